// Package completing gives shells what can stand at a place of a command line: models, versions, environments, engines, variants and
// toolchains, as the registry has them. It is quick and silent: where the registry cannot be asked there are no suggestions.
package completing

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// patience is how long a shell waits for suggestions.
const patience = time.Second

// most is how many models or versions are suggested.
const most = 200

// completer suggests from one registry.
type completer struct{ a *program.App }

// suggestions lists what can stand at a place, of a command with its arguments so far and a text that begun.
type suggestions func(ctx context.Context, i *wiring.Instance, c *cobra.Command, args []string, begun string) ([]string, error)

// Add adds completion to a command and all below it, by what their usage and their flags name.
func Add(c *cobra.Command, a *program.App) {
	by := completer{a}
	if of := by.argument(c); of != nil && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return by.ask(c, args, begun, of)
		}
	}
	for name, of := range map[string]suggestions{
		"env": environments, "from": environments, "to": environments, "model": models, "engine": by.engines(artifact.Engine.Label),
		"target": by.engines(func(e artifact.Engine) string { return e.Target.Name }), "variant": by.engines(func(e artifact.Engine) string { return e.Variant }),
		"node-type": nodeTypes,
	} {
		if flag := c.Flags().Lookup(name); flag == nil || (name == "from" || name == "to") && !strings.Contains(flag.Usage, "environment") {
			continue
		}
		err := c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return by.ask(c, args, begun, of)
		})
		if err != nil {
			panic(err) // two completions of one flag
		}
	}
	for _, child := range c.Commands() {
		Add(child, a)
	}
}

// argument returns what can be the first argument of a command; nil for files and others.
func (by completer) argument(c *cobra.Command) suggestions {
	usage := c.Use
	switch {
	case strings.Contains(usage, "REF"):
		return refs
	case c.Name() == "init" || c.Name() == "record":
		return nil // a file
	case strings.Contains(usage, " MODEL"):
		return models
	case strings.Contains(usage, " NAME") && c.Parent() != nil && c.Parent().Name() == "toolchain":
		return func(context.Context, *wiring.Instance, *cobra.Command, []string, string) ([]string, error) {
			return drivers.Names(), nil
		}
	case strings.Contains(usage, " NAME") && c.Parent() != nil && c.Parent().Name() == "node-type":
		return nodeTypes
	}
	return nil
}

// ask opens the registry that the command line names. Nothing is printed, and no error is shown.
func (by completer) ask(c *cobra.Command, args []string, begun string, of suggestions) (found []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmp.Or(c.Context(), context.Background()), patience)
	defer cancel()
	by.a.UI.Stderr = io.Discard
	directive := cobra.ShellCompDirectiveNoFileComp
	if strings.Contains(c.Use, "FILE | ") || strings.Contains(c.Use, "|DIR") {
		directive = cobra.ShellCompDirectiveDefault
	}
	if c.Parent() != nil && c.Parent().Name() == "toolchain" {
		found, _ = of(ctx, nil, c, args, begun)
		return matching(found, begun), directive
	}
	_ = by.a.With(ctx, func(i *wiring.Instance) (err error) { // without a registry there are no suggestions
		found, err = of(ctx, i, c, args, begun)
		return err
	})
	return matching(found, begun), directive
}

// matching returns those that begin with a text, sorted, each once.
func matching(all []string, begun string) []string {
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(text string) bool { return !strings.HasPrefix(text, begun) })
}

func environments(_ context.Context, i *wiring.Instance, _ *cobra.Command, _ []string, _ string) (names []string, _ error) {
	for _, e := range i.Envs.List {
		names = append(names, e.Name)
	}
	return names, nil
}

func nodeTypes(ctx context.Context, i *wiring.Instance, _ *cobra.Command, _ []string, _ string) (names []string, _ error) {
	types, err := i.NodeTypes.List(ctx, "", most)
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names, err
}

// models lists models, in the environment of --env if it is given.
func models(ctx context.Context, i *wiring.Instance, c *cobra.Command, _ []string, begun string) ([]string, error) {
	environment := ""
	if flag := c.Flags().Lookup("env"); flag != nil {
		environment = flag.Value.String()
	}
	if model, _, tagged := strings.Cut(begun, ":"); tagged && environment != "" {
		return versions(ctx, i, environment, model, model)
	}
	page, err := i.Models(ctx, environment, "", most)
	var names []string
	for _, m := range page.Items {
		names = append(names, m.Name)
	}
	return names, err
}

// refs lists ENVIRONMENT/MODEL:VERSION of heads, and behind a model those of all its versions.
func refs(ctx context.Context, i *wiring.Instance, c *cobra.Command, args []string, begun string) ([]string, error) {
	if flag := c.Flags().Lookup("env"); flag != nil && flag.Changed && strings.Contains(c.Use, "MODEL") {
		return models(ctx, i, c, args, begun)
	}
	environment, rest, _ := strings.Cut(begun, "/")
	if model, _, tagged := strings.Cut(rest, ":"); tagged {
		return versions(ctx, i, environment, model, environment+"/"+model)
	}
	heads, err := i.Heads(ctx, "", "")
	var all []string
	for _, h := range heads[:min(len(heads), most)] {
		all = append(all, h.Environment+"/"+h.Model+":"+h.Version)
	}
	return all, err
}

// versions lists the versions of a model in an environment, each behind a text and a colon.
func versions(ctx context.Context, i *wiring.Instance, environment, model, before string) ([]string, error) {
	page, err := i.Releases(ctx, environment, model, "", most)
	var all []string
	for _, r := range page.Items {
		all = append(all, before+":"+r.Tag)
	}
	return all, err
}

// engines lists what of engines is named, of the release that the command line means.
func (by completer) engines(of func(artifact.Engine) string) suggestions {
	return func(ctx context.Context, i *wiring.Instance, c *cobra.Command, args []string, _ string) ([]string, error) {
		environment := ""
		if flag := c.Flags().Lookup("env"); flag != nil {
			environment = flag.Value.String()
		}
		if flag := c.Flags().Lookup("ref"); flag != nil && flag.Changed {
			args = []string{flag.Value.String()}
		}
		ref, err := by.a.ModelOrReference(ctx, i, c.Name(), environment, args[:min(len(args), 1)])
		if err != nil {
			return nil, err
		}
		r, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
		return names(r, of), err
	}
}

func names(r artifact.Release, of func(artifact.Engine) string) (all []string) {
	for _, e := range r.Engines {
		all = append(all, of(e))
	}
	return all
}
