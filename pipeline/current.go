package pipeline

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
)

// destination is the environment that takes releases from the one that is verified, and the
// release that it has. The zero destination has none.
type destination struct {
	environment string
	release     registry.Digest
}

// current brings the engines that the next environment has now, which latency and accuracy are
// compared with. Where there is none yet, there is nothing to compare with.
func (f fetcher) current(ctx context.Context) (map[string]candidate, destination, error) {
	environments, err := f.p.Registry.Environments(ctx)
	if err != nil {
		return nil, destination{}, err
	}
	for _, next := range environments.List {
		if next.From != f.environment {
			continue
		}
		r, err := f.p.Registry.Release(ctx, next.Name, f.release.Model, "")
		if registry.HasCode(err, registry.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, destination{}, err
		}
		found, err := f.replaced(ctx, next.Name, r)
		return found, destination{next.Name, r.Digest}, err
	}
	return nil, destination{}, nil
}

// replaced fetches the engines of another release that run here and that this release does not have.
func (f fetcher) replaced(ctx context.Context, environment string, r registry.Release) (map[string]candidate, error) {
	found := make(map[string]candidate)
	for _, e := range r.Engines {
		tool, have := f.host.tools[e.Toolchain.Name]
		if _, own := f.release.Engine(e.Digest); own || !have || len(e.Target.Match(f.host.node, f.host.node.Runtime())) > 0 {
			continue
		}
		c := candidate{id: currentID(len(found)), engine: e, tool: tool}
		_, err := f.p.checkSignatures(ctx, environment, r, []candidate{c})
		if registry.HasCode(err, registry.CodePolicy) {
			f.p.warn("not compared with " + e.Label() + " of " + environment + ": " + err.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.model, err = f.engine(ctx, registry.Repository(environment, r.Model), c); err != nil {
			return nil, err
		}
		found[e.Label()] = c
	}
	return found, nil
}

// comparedCurrents are the engines of the destination that run on the cases: none, unless the
// limits compare accuracy with them.
func (v verification) comparedCurrents() []candidate {
	if v.limits.V == 1 || v.limits.Accuracy == nil || v.limits.Accuracy.Regression == nil || v.cases.set.Labels == "" {
		return nil
	}
	return v.currents()
}

// compareCurrent compares the answers of an engine with those of the engine that it would replace.
func (v verification) compareCurrent(ctx context.Context, c candidate, outputs runOutputs, measured *validators.Measured) error {
	was, ok := v.current[c.engine.Label()]
	if !ok || len(v.comparedCurrents()) == 0 {
		return nil
	}
	if err := outputs.broken[was.id]; err != nil {
		measured.CurrentFault = was.engine.Label() + " of " + v.next.environment + " does not run on these cases: " + err.Error()
		return ctx.Err()
	}
	run := v.comparison(nil, outputs.dir(c.id))
	run.Golden, run.Outputs, run.Masks, run.Labels.Slices = outputs.dir(was.id), nil, parity.Masks{}, ""
	found, err := parity.Compare(ctx, run)
	if err != nil {
		measured.CurrentFault = err.Error()
		return ctx.Err()
	}
	measured.Current, measured.CurrentFigures = found.Accuracy, found.Figures
	return nil
}
