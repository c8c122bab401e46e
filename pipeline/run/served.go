package run

import (
	"context"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// Through returns an engine as a model server runs it, and why none of its answers can count; empty for nothing. The server
// decides how the engine is loaded: its load profile and its execution providers do not apply.
func (c Candidate) Through(ctx context.Context, env *Env, server string, iface validators.Interface, cases toolchain.Input) (_ Candidate, fault string, err error) {
	temp, err := tempdir.New("served")
	if err != nil {
		return c, "", err
	}
	defer temp.Remove()
	inputs, err := withoutAnswers([]toolchain.Input{cases}, c.Tool.Labels, filepath.Join(temp.Path, "cases"))
	if err != nil {
		return c, "", err
	}
	served, err := env.Through(ctx, server, c.Model.loadedFirst(), iface, inputs[0], filepath.Join(temp.Path, "probe"))
	if err != nil {
		return c, "", err
	}
	if c.Tool.Profile.Server == server { // it is the runtime of the toolchain, of which targets have the name
		served.Identity.Name, served.Identity.Version = c.Tool.Runtime.Name, c.Tool.Runtime.Version
	}
	c.Tool.Timing, c.Tool.Runtime, c.Tool.Served = served.Driver, served.Identity, &served.Evidence
	c.Engine.Load, c.Engine.Providers = nil, nil
	return c, served.Fault, nil
}

// loadedFirst are the files of an engine, with the one that is loaded in front.
func (l Loadable) loadedFirst() []toolchain.Input {
	inputs := slices.Clone(l.Inputs)
	if at := slices.IndexFunc(inputs, func(in toolchain.Input) bool { return in.Name == l.Entry }); at > 0 {
		inputs[0], inputs[at] = inputs[at], inputs[0]
	}
	return inputs
}
