package pipeline

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
)

// destination is the environment that takes releases from the one that is verified, and the
// release that it has. The zero destination has none.
type destination struct {
	environment string
	release     registry.Digest
}

// replaced is the engine of the destination that an engine would replace. With a fault it cannot be
// compared with here, and limits that compare stay undecided.
type replaced struct {
	candidate
	fault string
}

// current brings the engines that the candidates would replace, by the labels of the candidates.
// Where the destination has no release yet, or no engine for this machine, there is nothing to
// compare with.
func (f fetcher) current(ctx context.Context, candidates []candidate) (map[string]replaced, destination, error) {
	next, err := f.next(ctx)
	if next == "" || err != nil {
		return nil, destination{}, err
	}
	r, err := f.p.Registry.Release(ctx, next, f.release.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil, destination{environment: next}, nil
	}
	if err != nil {
		return nil, destination{}, err
	}
	found, err := f.replaced(ctx, next, r, candidates)
	return found, destination{next, r.Digest}, err
}

// next names the environment that takes releases from the one that is verified: the first, or the
// one that was asked for; empty if there is none.
func (f fetcher) next(ctx context.Context) (string, error) {
	environments, err := f.p.Registry.Environments(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range environments.List {
		if e.From == f.environment {
			names = append(names, e.Name)
		}
	}
	asked := f.p.Destination
	switch {
	case asked == "" && len(names) == 0:
		return "", nil
	case asked == "":
		return names[0], nil
	case slices.Contains(names, asked):
		return asked, nil
	}
	return "", registry.Errorf(registry.CodeInvalid, "environment %s takes no releases from %s: want one of %q", asked, f.environment, names)
}

// replaced fetches the engine of a release that each candidate would replace, once.
func (f fetcher) replaced(ctx context.Context, environment string,
	r registry.Release, candidates []candidate) (map[string]replaced, error) {
	there, err := f.p.host(ctx, r)
	if err != nil {
		return nil, err
	}
	found, fetched := make(map[string]replaced), make(map[registry.Digest]replaced)
	for _, c := range candidates {
		e, ok := there.counterpart(c.engine, r.Ranked())
		if !ok || e.Digest == c.engine.Digest {
			continue
		}
		was, again := fetched[e.Digest]
		if !again {
			was = replaced{candidate: candidate{id: currentID(len(fetched)), engine: e}}
			if err := f.fetchReplaced(ctx, environment, r, there, &was); err != nil {
				return nil, err
			}
			fetched[e.Digest] = was
		}
		found[c.engine.Label()] = was
	}
	return found, nil
}

// counterpart picks the engine that e would replace, of engines in the order in which nodes get them. That is the one with its label for the same
// machines, or else the one that resolve prefers for this machine. Failing both, it is one for other
// machines that can get e too. Labels alone do not decide, since a builder chooses them: a renamed
// variant would be compared with nothing, or with a weak engine.
func (h host) counterpart(e registry.Engine, engines []registry.Engine) (registry.Engine, bool) {
	var fit, elsewhere []registry.Engine
	for _, there := range engines {
		switch {
		case there.Label() == e.Label() && there.Target.Covers(e.Target) && e.Target.Covers(there.Target):
			return there, true
		case h.machineMeets(there.Target):
			fit = append(fit, there)
		case there.Target.Covers(e.Target) || e.Target.Covers(there.Target):
			elsewhere = append(elsewhere, there)
		}
	}
	if len(fit) == 0 {
		fit = elsewhere
	}
	if len(fit) == 0 {
		return registry.Engine{}, false
	}
	return fit[0], true
}

// fetchReplaced fetches an engine of the destination, or notes why it cannot run here.
func (f fetcher) fetchReplaced(ctx context.Context, environment string, r registry.Release, there host, was *replaced) error {
	fault, err := f.unfitReplaced(ctx, environment, r, there, was)
	if err != nil {
		return err
	}
	if fault != "" {
		was.fault = was.engine.Label() + " of " + environment + " cannot be compared with here: " + fault
		f.p.warn(was.fault)
		return nil
	}
	was.model, err = f.engine(ctx, registry.Repository(environment, r.Model), was.candidate)
	return err
}

// unfitReplaced says why an engine of the destination cannot run here, if so, and finds its tool.
func (f fetcher) unfitReplaced(ctx context.Context, environment string, r registry.Release, there host, was *replaced) (string, error) {
	tool, skipped := there.toolOf(was.engine)
	if skipped != nil {
		return strings.TrimPrefix(skipped.String(), skipped.Label+": "), nil
	}
	was.tool = tool
	_, err := f.p.checkSignatures(ctx, environment, r, []candidate{was.candidate})
	if registry.HasCode(err, registry.CodePolicy) {
		return err.Error(), nil
	}
	return "", err
}

// comparedCurrents are the engines of the destination that run on the cases: none, unless the
// limits compare accuracy with them.
func (v verification) comparedCurrents() []candidate {
	if !v.comparesAccuracy() {
		return nil
	}
	return v.currents()
}

// comparesAccuracy reports whether limits bound how much worse than the destination's engine one may be.
func (v verification) comparesAccuracy() bool {
	return v.limits.Accuracy != nil && v.limits.Accuracy.Regression != nil && v.cases.set.Labels != ""
}

// destination is what limits on a regression are held against, for the report; nil without such limits.
func (v verification) destination(c candidate) *registry.Destination {
	accuracy := v.limits.Accuracy != nil && v.limits.Accuracy.Regression != nil
	if v.next.environment == "" || !accuracy && v.limits.Latency.Regression == nil {
		return nil
	}
	return &registry.Destination{Environment: v.next.environment, Release: registry.NewDigestSet(v.next.release),
		Engine: registry.NewDigestSet(v.current[c.engine.Label()].engine.Digest)}
}

// compareCurrent compares the answers of an engine with those of the engine that it would replace. It
// returns what was measured of each case; nil for nothing.
func (v verification) compareCurrent(ctx context.Context, c candidate, outputs runOutputs, measured *validators.Measured) (accuracy.Columns, error) {
	was, ok := v.current[c.engine.Label()]
	if !ok || !v.comparesAccuracy() {
		return nil, nil
	}
	if was.fault != "" {
		measured.CurrentFault = was.fault
		return nil, nil
	}
	if err := outputs.broken[was.id]; err != nil {
		measured.CurrentFault = was.engine.Label() + " of " + v.next.environment + " does not run on these cases: " + err.Error()
		return nil, ctx.Err()
	}
	run := v.comparison(nil, outputs.dir(c.id))
	run.Golden, run.Outputs, run.Masks, run.Labels.Slices = outputs.dir(was.id), nil, parity.Masks{}, ""
	if measured.CurrentFault = v.withScores(ctx, &run); measured.CurrentFault != "" {
		return nil, ctx.Err()
	}
	found, err := parity.Compare(ctx, run)
	if err != nil {
		measured.CurrentFault = err.Error()
		return nil, ctx.Err()
	}
	measured.Current, measured.CurrentFigures = found.Accuracy, found.Figures
	return found.Each.Accuracy, nil
}
