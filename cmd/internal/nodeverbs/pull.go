package nodeverbs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators/format"
)

// Pull downloads the engine that fits a machine.
func (v Verbs) Pull() *cobra.Command {
	var q nodeFlags
	var dir, trust string
	var unpromoted bool
	c := &cobra.Command{
		Use:   "pull MODEL -o DIR",
		Short: "Download the engine that fits this machine, and verify it before use",
		Long: `Resolves, writes the engine next to DIR, checks every digest and signature there, and
puts it in place of DIR in one step. A folder that pull made is replaced, unless files were
added to it; any other folder is refused, and so is a mount point (name a folder inside it).

Signatures are judged by the keys that this machine trusts, whatever the registry says: by the file
of --trust, which a machine without the data directory needs.`,
		Example: "  " + v.UI.Program + " pull vision/digits --env prod -o /srv/digits",
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return v.With(c.Context(), func(r *connect.Registry) error {
				query, err := v.query(c, r, q, args[0])
				if err != nil {
					return err
				}
				verify, by := r.Verify, v.trust(trust)
				if trust != "" {
					if by, err = v.follow(c.Context(), r, trust, q.environment); err != nil {
						return err
					}
					if verify, err = by.Verify(); err != nil {
						return err
					}
				}
				want, err := expectation(by, q.environment, unpromoted)
				if err != nil {
					return err
				}
				return v.pull(c.Context(), r, verify, query, dir, want)
			})
		},
	}
	q.flags(c)
	c.Flags().StringVarP(&dir, "out", "o", "", "folder to put the engine in")
	c.Flags().StringVar(&trust, "trust", "",
		"file with the registry: and trust: to judge signatures by, or with follow: (default: the data directory's)")
	c.Flags().BoolVar(&unpromoted, "unpromoted", false,
		"accept an engine that no promoter let into its environment (default: in environments that builds write to, by environments.yaml here)")
	command.Required(c, "out")
	return c
}

func (v Verbs) pull(ctx context.Context, r *connect.Registry, verify storage.VerifyEvidence,
	query api.ResolveQuery, dir string, want pull.Expectation) error {
	puller := pull.Puller{
		Checker:  pull.Checker{Verify: verify, ReadPart: oci.ReadPart},
		Registry: r, Parts: r.Store, Evidence: r.Store, Inspect: format.CheckPart, Step: v.UI.Step,
	}
	result, err := puller.Pull(ctx, query, dir, want)
	if err != nil {
		return withRuntimeHint(err, query, result.Resolution)
	}
	if len(result.Operators) > 0 {
		v.UI.Note("%s carries native code: %s", result.Record.Label, strings.Join(result.Operators, ", "))
	}
	for _, p := range result.Resolution.Engine.Providers {
		if len(p.Options) > 0 {
			v.UI.Note("%s was proven with %s: load it with these options", result.Record.Label, p)
		}
	}
	if load := result.Resolution.Engine.Load; load != nil {
		v.UI.Note("%s", loadNote(result.Record.Label, *load))
	}
	return v.UI.Result(result.Dir, result)
}
