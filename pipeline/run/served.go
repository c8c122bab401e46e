package run

import (
	"context"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// Through returns an engine as the model server of the environment runs it, and why none of its answers can count; empty for nothing. The server
// decides how the engine is loaded: its load profile and its execution providers do not apply.
func (c Candidate) Through(ctx context.Context, env *Env, iface validators.Interface, cases toolchain.Input) (_ Candidate, fault string, err error) {
	temp, err := tempdir.New("served")
	if err != nil {
		return c, "", err
	}
	defer temp.Remove()
	inputs, err := withoutAnswers([]toolchain.Input{cases}, c.Tool.Labels, filepath.Join(temp.Path, "cases"))
	if err != nil {
		return c, "", err
	}
	served, err := env.Through(ctx, c, iface, inputs[0], filepath.Join(temp.Path, "probe"))
	if err != nil {
		return c, "", err
	}
	c.Tool.Timing, c.Tool.Runtime, c.Tool.Served = served.Driver, served.Identity, &served.Evidence
	c.Engine.Load, c.Engine.Providers = nil, nil
	return c, served.Fault, nil
}
