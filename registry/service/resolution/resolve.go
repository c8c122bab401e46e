package resolution

import (
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// Resolve returns the engine for a node, and the reasons why each other candidate was rejected.
func Resolve(ctx context.Context, s *backend.Backend, q api.ResolveQuery) (api.Resolution, error) {
	environment, err := s.Find(q.Environment)
	if err != nil {
		return api.Resolution{}, err
	}
	d, err := Read(ctx, s, environment, q.Model, q.Version)
	if err != nil {
		return api.Resolution{}, err
	}
	return d.Choose(environment, q)
}

// Choose evaluates every engine of the release.
func (d Resolvable) Choose(environment policy.Environment, q api.ResolveQuery) (api.Resolution, error) {
	answer := api.Resolution{Release: d.release.Digest, Version: d.release.Tag()}
	answer.Candidates = make([]api.Candidate, 0, len(d.engines))
	for i := range d.engines {
		answer.Candidates = append(answer.Candidates, consider(&answer, &d.engines[i], q))
	}
	chosenFirst(answer.Candidates)
	if answer.Engine == nil {
		return answer, noEngine(q, answer)
	}
	ref := registry.Ref{
		Host:        environment.Registry,
		Environment: q.Environment,
		Model:       q.Model,
		Digest:      answer.Engine.Digest,
	}
	if q.As == api.AsImage {
		if ref.Digest = answer.Engine.Image.Digest; ref.Digest == "" {
			return answer, registry.WithHint(registry.Errorf(registry.CodeNotFound,
				"%s %s in %s has no image forms: the version of mlpromote that built it made none", q.Model, answer.Version, q.Environment),
				"build it again under a new version, verify and promote that")
		}
	}
	answer.Ref = ref.String()
	for _, b := range d.lost {
		if b.Subject == d.release.Digest || b.Subject == answer.Engine.Digest {
			answer.Unlisted = append(answer.Unlisted, b)
		}
	}
	return answer, nil
}

// consider evaluates one engine. The first engine without objections wins, as [policy.FirstFit] chooses among all.
func consider(answer *api.Resolution, e *ratedEngine, q api.ResolveQuery) api.Candidate {
	c := api.Candidate{Engine: e.Digest, Label: e.Label()}
	fit, asked := policy.FitOn(e.Engine, q.Machine(), e.unmet), q.Variant == "" || e.Variant == q.Variant
	for _, m := range fit.Lacks {
		c.Reasons = append(c.Reasons, m.String())
	}
	if !asked {
		c.Reasons = append(c.Reasons, fmt.Sprintf("variant %s was requested", q.Variant))
	}
	for _, unmet := range fit.Unmet {
		c.Reasons = append(c.Reasons, reason(unmet))
	}
	switch {
	case !asked:
	case !fit.Fits():
		c.MissingRuntimes = fit.MissingRuntimes()
	case answer.Engine == nil:
		c.Chosen, answer.Engine = true, &e.Engine
	default:
		c.Reasons = append(c.Reasons, artifact.WhyPreferred(*answer.Engine, e.Engine))
	}
	return c
}

func chosenFirst(cs []api.Candidate) {
	slices.SortStableFunc(cs, func(a, b api.Candidate) int {
		switch {
		case a.Chosen == b.Chosen:
			return 0
		case a.Chosen:
			return -1
		default:
			return 1
		}
	})
}

func noEngine(q api.ResolveQuery, answer api.Resolution) error {
	text := fmt.Sprintf("no engine of %s %s in %s for this node and runtime:", q.Model, answer.Version, q.Environment)
	for _, c := range answer.Candidates {
		text += fmt.Sprintf("\n  %s: %s", c.Label, c.Reasons[0])
	}
	return registry.Errorf(registry.CodeNoEngine, "%s", text)
}
