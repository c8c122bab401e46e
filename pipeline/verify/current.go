package verify

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
)

// current brings the engines that the candidates would replace, by the labels of the candidates.
// Where the destination has no release yet, or no engine for this machine, there is nothing to
// compare with.
func (f fetcher) current(ctx context.Context, candidates []run.Candidate) (map[string]replaced, destination, error) {
	next, err := f.next(ctx)
	if next == "" || err != nil {
		return nil, destination{}, err
	}
	r, err := f.env.Registry.Release(ctx, next, f.release.Model, "")
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
	environments, err := f.env.Registry.Environments(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range environments.List {
		if e.From == f.environment {
			names = append(names, e.Name)
		}
	}
	asked := f.env.Destination
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
	r artifact.Release, candidates []run.Candidate) (map[string]replaced, error) {
	there, err := openHost(ctx, f.env, r)
	if err != nil {
		return nil, err
	}
	found, fetched := make(map[string]replaced), make(map[registry.Digest]replaced)
	for _, c := range candidates {
		e, ok := there.counterpart(c.Engine, r.Ranked())
		if !ok || e.Digest == c.Engine.Digest {
			continue
		}
		was, again := fetched[e.Digest]
		if !again {
			was = replaced{Candidate: run.Candidate{ID: currentID(len(fetched)), Engine: e}}
			if err := f.fetchReplaced(ctx, environment, r, there, &was); err != nil {
				return nil, err
			}
			fetched[e.Digest] = was
		}
		found[c.Engine.Label()] = was
	}
	return found, nil
}

// fetchReplaced fetches an engine of the destination, or notes why it cannot run here.
func (f fetcher) fetchReplaced(ctx context.Context, environment string, r artifact.Release, there Host, was *replaced) error {
	fault, err := f.unfitReplaced(ctx, environment, r, there, was)
	if err != nil {
		return err
	}
	if fault != "" {
		was.fault = was.Engine.Label() + " of " + environment + " cannot be compared with here: " + fault
		f.env.Caution(was.fault)
		return nil
	}
	was.Model, err = f.engine(ctx, registry.Repository(environment, r.Model), was.Candidate)
	return err
}

// unfitReplaced says why an engine of the destination cannot run here, if so, and finds its tool.
func (f fetcher) unfitReplaced(ctx context.Context, environment string, r artifact.Release, there Host, was *replaced) (string, error) {
	tool, skipped := there.toolOf(was.Engine)
	if skipped != nil {
		return strings.TrimPrefix(skipped.String(), skipped.Label+": "), nil
	}
	was.Tool = tool
	_, err := checkSignatures(ctx, f.env, environment, r, []run.Candidate{was.Candidate})
	if registry.HasCode(err, registry.CodePolicy) {
		return err.Error(), nil
	}
	return "", err
}

// comparedCurrents are the engines of the destination that run on the cases: none, unless the
// limits compare accuracy with them.
func comparedCurrents(v Session) []run.Candidate {
	if !comparesAccuracy(v) {
		return nil
	}
	return currents(v)
}

// comparesAccuracy reports whether limits bound how much worse than the destination's engine one may be.
func comparesAccuracy(v Session) bool {
	return v.Limits.Accuracy != nil && v.Limits.Accuracy.Regression != nil && v.Cases.Set.Labels != ""
}

// destinationOf is what limits on a regression are held against, for the report; nil without such limits.
func destinationOf(v Session, c run.Candidate) *evidence.Destination {
	accuracy := v.Limits.Accuracy != nil && v.Limits.Accuracy.Regression != nil
	if v.next.environment == "" || !accuracy && v.Limits.Latency.Regression == nil {
		return nil
	}
	return &evidence.Destination{Environment: v.next.environment, Release: evidence.NewDigestSet(v.next.release),
		Engine: evidence.NewDigestSet(v.current[c.Engine.Label()].Engine.Digest)}
}

// compareCurrent compares the answers of an engine with those of the engine that it would replace. It
// returns what was measured of each case; nil for nothing.
func compareCurrent(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs, measured *validators.Measured) (accuracy.Columns, error) {
	was, ok := v.current[c.Engine.Label()]
	if !ok || !comparesAccuracy(v) {
		return nil, nil
	}
	if was.fault != "" {
		measured.CurrentFault = was.fault
		return nil, nil
	}
	if err := outputs.broken[was.ID]; err != nil {
		measured.CurrentFault = was.Engine.Label() + " of " + v.next.environment + " does not run on these cases: " + err.Error()
		return nil, ctx.Err()
	}
	run := comparison(v, nil, outputs.dir(c.ID))
	run.Golden, run.Outputs, run.Masks, run.Labels.Slices = outputs.dir(was.ID), nil, parity.Masks{}, ""
	if measured.CurrentFault = withScores(ctx, v, &run); measured.CurrentFault != "" {
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
