package service

import (
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Resolve returns the engine for a node, and the reasons why each other candidate was rejected.
func (s *Service) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	environment, err := s.find(q.Environment)
	if err != nil {
		return registry.Resolution{}, err
	}
	d, err := s.resolvable(ctx, environment, q.Model, q.Version)
	if err != nil {
		return registry.Resolution{}, err
	}
	return d.choose(environment, q)
}

// choose evaluates every engine of the release.
func (d resolvable) choose(environment registry.Environment, q registry.ResolveQuery) (registry.Resolution, error) {
	answer := registry.Resolution{Release: d.release.Digest, Version: d.release.Tag()}
	answer.Candidates = make([]registry.Candidate, 0, len(d.engines))
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
	answer.Ref = ref.String()
	for _, b := range d.lost {
		if b.Subject == d.release.Digest || b.Subject == answer.Engine.Digest {
			answer.Unlisted = append(answer.Unlisted, b)
		}
	}
	return answer, nil
}

// consider evaluates one engine. The first engine without objections wins, as [registry.FirstFit] chooses among all.
func consider(answer *registry.Resolution, e *ratedEngine, q registry.ResolveQuery) registry.Candidate {
	c := registry.Candidate{Engine: e.Digest, Label: e.Label()}
	fit, asked := e.FitOn(q.Machine(), e.unmet), q.Variant == "" || e.Variant == q.Variant
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
		c.Reasons = append(c.Reasons, registry.WhyPreferred(*answer.Engine, e.Engine))
	}
	return c
}

func chosenFirst(cs []registry.Candidate) {
	slices.SortStableFunc(cs, func(a, b registry.Candidate) int {
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

func noEngine(q registry.ResolveQuery, answer registry.Resolution) error {
	text := fmt.Sprintf("no engine of %s %s in %s for this node and runtime:", q.Model, answer.Version, q.Environment)
	for _, c := range answer.Candidates {
		text += fmt.Sprintf("\n  %s: %s", c.Label, c.Reasons[0])
	}
	return registry.Errorf(registry.CodeNoEngine, "%s", text)
}
