package upkeep

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/snapshots"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// Save writes a release to a file.
func (v Verbs) Save() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "save [REF] -o FILE",
		Short: "Save a release with its evidence to a file, for a network without a connection",
		Long: `Writes an OCI image layout in a tar archive: the release, every piece of evidence that counts,
environments.yaml and the public keys of this machine. mlpromote load checks and stores it elsewhere;
oras and other OCI tools read it too. Reference models and cases are not in it.
Saving the same release with the same evidence again results in the same bytes.

REF defaults to the last build here. stdout: the digest of the file.`,
		Example: "  mlpromote save prod/vision/digits:1.4.0 -o digits-1.4.0.tar",
		Args:    command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.save(c.Context(), i, file, args) })
		},
	}
	c.Flags().StringVarP(&file, "out", "o", "", "file to write")
	command.Required(c, "out")
	return c
}

func (v Verbs) save(ctx context.Context, i *wiring.Instance, file string, args []string) error {
	ref, err := v.Reference(i, args)
	if err != nil {
		return err
	}
	saved, err := snapshots.SaveRelease(ctx, &i.Registry, ref, v.At().PolicyFolder(), file)
	if err != nil {
		return err
	}
	if saved.Ignored > 0 {
		v.UI.Note("ignored and not saved: %s; mlpromote inspect has the reasons", registry.Count(saved.Ignored, "piece of evidence", "pieces of evidence"))
	}
	v.UI.Note("saved %s with %s: %s", saved.Ref, registry.Count(saved.Evidence, "piece of evidence", "pieces of evidence"), ui.Size(saved.Bytes))
	return v.UI.Result(string(saved.Digest), saved)
}

// Load lets a saved release in.
func (v Verbs) Load() *cobra.Command {
	var l snapshots.LoadRelease
	c := &cobra.Command{
		Use:   "load FILE --env ENV",
		Short: "Let a saved release into the first environment here, after checking all of it",
		Long: `Checks a file that mlpromote save wrote, without any network: its form, every digest, every
signature by the keys of --trust FILE, that a promoter of ENV let the release in and nothing in the file speaks
against it, and that no file of it runs code when it is loaded. Keys in the file itself count for nothing; a trust
bundle in it counts if FILE follows its publisher.

Only then is it copied into the first environment here, with the evidence by keys that
environments.yaml trusts. It gets further as any release does: by mlpromote promote, with
the policy of this side. stdout: the ref.`,
		Example: "  mlpromote load digits-1.4.0.tar --env prod --trust sender.yaml --max-age 720h",
		Args:    command.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if l.Want.MaxAge < 0 {
				return registry.Errorf(registry.CodeInvalid, "--max-age %s: want more than nothing", l.Want.MaxAge)
			}
			l.Trust.PolicyFolder = v.At().PolicyFolder()
			return v.load(c.Context(), args[0], l)
		},
	}
	c.Flags().StringVar(&l.Trust.File, "trust", "", "file with the registry: and trust: of the side that saved it (default: environments.yaml here)")
	c.Flags().StringVar(&l.Want.Environment, "env", "", "environment that the release must be saved from")
	c.Flags().StringVar(&l.Want.Model, "model", "", "model that it must be of (default: any)")
	c.Flags().DurationVar(&l.Want.MaxAge, "max-age", 0, "how long ago a promoter may have verified it (default: any time)")
	c.Flags().StringVar(&l.Restrictions, "restrictions", "",
		"signed restriction list of --env, which counts in addition to the list in the file, and must not be older")
	command.Required(c, "env")
	return c
}

func (v Verbs) load(ctx context.Context, file string, l snapshots.LoadRelease) error {
	checked, opened, err := l.Open(ctx, file)
	if err != nil {
		return err
	}
	defer opened.Close()
	if v.At().Registry == "" {
		if err := v.At().Create(); err != nil {
			return err
		}
	}
	return v.With(ctx, func(i *wiring.Instance) error {
		loaded, err := snapshots.TakeRelease(ctx, &i.Registry, checked)
		if err != nil {
			return err
		}
		return v.loaded(loaded)
	})
}

// loaded says what was let in.
func (v Verbs) loaded(loaded snapshots.LoadedRelease) error {
	for _, left := range loaded.NotLoaded {
		v.UI.Note("not loaded: evidence %s: %s", ui.Short(left.Bundle), left.Reason)
	}
	v.UI.Note("%s let it into %s of %s on %s; loaded with %s", loaded.Promoter, loaded.Origin.Environment, loaded.Origin.Registry,
		loaded.Promoted.UTC().Format(time.DateTime), registry.Count(loaded.Attached, "piece of evidence", "pieces of evidence"))
	return v.UI.Result(loaded.Ref, loaded)
}
