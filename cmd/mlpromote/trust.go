package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/signer"
)

func (a *app) trustCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "trust REF|DIR",
		Short: "Check signatures, and nothing else",
		Long: `For a folder that pull made: every file is what was pulled, a trusted builder signed
the engine, and a trusted promoter let it into its environment. Needs no registry: the
proof lies in the folder, the trust in --trust FILE or the data directory. A trust file
names no environments, so with it a promoter's summary is always required.
For a reference: every bundle, who signed it, and which role that key may play there.`,
		Args: exactly("REF|DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				return a.trustDir(c.Context(), args[0], file)
			}
			return a.with(c.Context(), func(i *instance) error { return a.trustRef(c.Context(), i, args[0]) })
		},
	}
	c.Flags().StringVar(&file, "trust", "", "file with the registry: and trust: to judge by (default: the data directory's)")
	return c
}

func (a *app) trustDir(ctx context.Context, dir, file string) error {
	p, err := a.trusting(&pipeline.Pipeline{ReadPart: oci.ReadPart}, file)
	if err != nil {
		return err
	}
	want, err := a.expectation(file)
	if err != nil {
		return err
	}
	result, err := p.TrustDir(ctx, dir, want)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nbuilder   %s", result.Record.Reference, result.Builder)
	if result.Promoter != "" {
		text += "\npromoter  " + result.Promoter
	}
	return a.ui.result(text, result)
}

// expectation is what the trust file or the data directory knows of environments. A
// trust file knows none, so everything needs the summary of a promoter.
func (a *app) expectation(file string) (pipeline.Expectation, error) {
	if file != "" {
		trust, err := environments.LoadTrust(file)
		return pipeline.Expectation{Registry: trust.Registry}, err
	}
	envs, err := environments.Load(a.data)
	return pipeline.Expectation{Registry: envs.Registry, Unprotected: envs.Unprotected}, err
}

// trusting makes the pipeline judge signatures by a trust file; an empty name means the
// data directory's environments.yaml.
func (a *app) trusting(p *pipeline.Pipeline, file string) (*pipeline.Pipeline, error) {
	entries, dir, err := a.trustEntries(file)
	if err != nil {
		return nil, err
	}
	if file == "" && p.CheckBundle != nil {
		return p, nil
	}
	trust, err := signer.NewTrust(entries, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(dir, path))
	})
	if err != nil {
		return nil, err
	}
	p.CheckBundle = trust.Verify
	return p, nil
}

// trustEntries are those of a trust file, else of the data directory, with the folder
// that paths of keys start from.
func (a *app) trustEntries(file string) ([]registry.TrustEntry, string, error) {
	if file != "" {
		trust, err := environments.LoadTrust(file)
		return trust.Entries, trust.Dir, err
	}
	envs, err := environments.Load(a.data)
	return envs.Trust, a.data, err
}

func (a *app) trustRef(ctx context.Context, i *instance, arg string) error {
	ref, err := a.reference(i, []string{arg})
	if err != nil {
		return err
	}
	found, err := inspect(ctx, i, ref)
	if err != nil {
		return err
	}
	rows := [][]string{{"SUBJECT", "PREDICATE", "SIGNER", "ROLES"}}
	for _, e := range found.Evidence {
		rows = append(rows, []string{short(e.Subject), e.PredicateType, e.Signer, fmt.Sprint(e.Roles)})
	}
	if out := a.ui.result(table(rows), found); out != nil {
		return out
	}
	if unsigned := (registry.Policy{Require: []string{registry.RequireSignature}}).Check(found.Release, found.claims).Unmet(); len(unsigned) > 0 {
		return registry.Errorf(registry.CodeTrust, "%s: %s of %s: %s", arg, unsigned[0].Name, unsigned[0].Subject, unsigned[0].Detail)
	}
	return nil
}
