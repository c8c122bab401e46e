package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
)

// nodeFlags is the flags that resolve and pull share.
type nodeFlags struct {
	environment, version, node, labels, runtime, variant string
}

func (q *nodeFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&q.environment, "env", "", "environment")
	c.Flags().StringVar(&q.version, "version", "", "tag of a release (default: the head)")
	c.Flags().StringVar(&q.node, "node", "", "node document (default: this machine)")
	c.Flags().StringVar(&q.labels, "labels", "", "file with a Kubernetes node as kubectl get node -o json prints it, in place of --node; --runtime says what runs there")
	c.Flags().StringVar(&q.runtime, "runtime", "", "NAME:VERSION such as onnxruntime:1.30.0, or a runtime document (default: what the node has)")
	c.Flags().StringVar(&q.variant, "variant", "", "only this variant")
	required(c, "env")
}

// query asks about the node that is named, or about this machine with what our own
// toolchains brought.
func (a *app) query(ctx context.Context, q nodeFlags, model string) (registry.ResolveQuery, error) {
	query := registry.ResolveQuery{Environment: q.environment, Model: model, Version: q.version, Variant: q.variant}
	var err error
	switch {
	case q.node != "" && q.labels != "":
		err = registry.Errorf(registry.CodeInvalid, "--node and --labels: want one of them")
	case q.labels != "":
		query.Node, err = readLabels(q.labels)
	case q.node != "":
		query.Node, err = node.ParseFile(q.node)
	default:
		query.Node, err = a.describe(ctx, a.installedRuntimes())
	}
	if err != nil || q.runtime == "" {
		return query, err
	}
	runtime, err := node.ParseRuntime(q.runtime)
	query.Runtime = &runtime
	return query, err
}

// installedRuntimes are the runtimes that our toolchains brought to this machine.
func (a *app) installedRuntimes() map[string]string {
	return installed.Runtimes(a.getenv("MLPROMOTE_CACHE"))
}

func (a *app) resolveCommand() *cobra.Command {
	var q nodeFlags
	var explain bool
	c := &cobra.Command{
		Use:   "resolve MODEL",
		Short: "Find the engine that fits a node",
		Long: `Prints the ref of one engine, with its digest. --explain adds why every other candidate
was rejected. Exit code 6: no engine fits.`,
		Example: "  oras pull $(mlpromote resolve vision/digits --env prod) -o DIR",
		Args:    exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				query, err := a.query(c.Context(), q, args[0])
				if err != nil {
					return err
				}
				resolution, err := i.Resolve(c.Context(), query)
				if explain && len(resolution.Candidates) > 0 {
					a.ui.Note("candidates:\n%s", ui.Layout(candidatesText(resolution)))
				}
				if err != nil {
					if len(resolution.Candidates) > 0 {
						a.ui.Partial(resolution)
					}
					return err
				}
				resolution.Ref = i.Reference(resolution.Ref)
				return a.ui.Result(ui.Plain(resolution.Ref), resolution)
			})
		},
	}
	q.flags(c)
	c.Flags().BoolVar(&explain, "explain", false, "say why every other candidate was rejected (on stderr)")
	return c
}

func candidatesText(r registry.Resolution) string {
	rows := [][]string{}
	for _, c := range r.Candidates {
		why := "chosen"
		if !c.Chosen {
			why = strings.Join(c.Reasons, "; ")
		}
		rows = append(rows, []string{"  " + c.Label, why})
	}
	return strings.TrimRight(ui.Table(rows), "\n")
}

func (a *app) pullCommand() *cobra.Command {
	var q nodeFlags
	var dir, trust string
	var unpromoted bool
	c := &cobra.Command{
		Use:   "pull MODEL -o DIR",
		Short: "Download the engine that fits this machine, and verify it before use",
		Long: `Resolves, writes the engine beside DIR, checks every digest and signature there, and
puts it in place of DIR in one step. A folder that pull made is replaced, unless somebody added
files to it; any other folder is refused, and so is a mount point (name a folder inside it).`,
		Example: "  mlpromote pull vision/digits --env prod -o /srv/digits",
		Args:    exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				query, err := a.query(c.Context(), q, args[0])
				if err != nil {
					return err
				}
				verify := i.Verify
				if trust != "" {
					if verify, err = a.verifyWith(trust); err != nil {
						return err
					}
				}
				want, err := a.expectation(trust, q.environment, unpromoted)
				if err != nil {
					return err
				}
				return a.pull(c.Context(), i, verify, query, dir, want)
			})
		},
	}
	q.flags(c)
	c.Flags().StringVarP(&dir, "out", "o", "", "folder to put the engine in")
	c.Flags().StringVar(&trust, "trust", "", "file with the registry: and trust: to judge signatures by (default: the data directory's)")
	c.Flags().BoolVar(&unpromoted, "unpromoted", false, "accept an engine that no promoter let into its environment (default: where environments.yaml here says that builds write)")
	required(c, "out")
	return c
}

func (a *app) pull(ctx context.Context, i *wiring.Instance, verify registry.VerifyEvidence, query registry.ResolveQuery, dir string, want pull.Expectation) error {
	puller := pull.Puller{
		Checker:  pull.Checker{Verify: verify, ReadPart: oci.ReadPart},
		Registry: i, Parts: i.Store, Evidence: i.Store, Step: a.ui.Step,
	}
	result, err := puller.Pull(ctx, query, dir, want)
	if err != nil {
		return err
	}
	if len(result.Operators) > 0 {
		a.ui.Note("%s carries native code: %s", result.Record.Label, strings.Join(result.Operators, ", "))
	}
	for _, p := range result.Resolution.Engine.Providers {
		if len(p.Options) > 0 {
			a.ui.Note("%s was proven with %s: load it with these options", result.Record.Label, p)
		}
	}
	return a.ui.Result(result.Dir, result)
}

// required refuses a command line without the flags, as bad usage.
func required(c *cobra.Command, names ...string) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		for _, name := range names {
			if !c.Flags().Changed(name) {
				return usage(c, errors.New("--"+name+" is missing"))
			}
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}
