package service

import (
	"cmp"
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
	for _, e := range d.engines {
		answer.Candidates = append(answer.Candidates, consider(&answer, e, q))
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
	return answer, nil
}

// consider evaluates one engine. The first engine without objections wins.
func consider(answer *registry.Resolution, e ratedEngine, q registry.ResolveQuery) registry.Candidate {
	c := registry.Candidate{Engine: e.Digest, Label: e.Label()}
	runtime := q.Node.Runtime()
	if q.Runtime != nil {
		runtime = *q.Runtime
	}
	for _, m := range e.Target.Match(q.Node, runtime) {
		c.Reasons = append(c.Reasons, m.String())
	}
	if q.Variant != "" && e.Variant != q.Variant {
		c.Reasons = append(c.Reasons, fmt.Sprintf("variant %s was requested", q.Variant))
	}
	c.Reasons = append(c.Reasons, e.unmet...)
	if len(c.Reasons) == 0 && answer.Engine == nil {
		c.Chosen, answer.Engine = true, &e.Engine
	} else if len(c.Reasons) == 0 {
		c.Reasons = append(c.Reasons, preference(*answer.Engine, e.Engine))
	}
	return c
}

// ranked orders engines by preference: the closest match to the machine, then the lowest
// precision (which keeps the same limits), then the newest toolchain.
func ranked(engines []registry.Engine) []registry.Engine {
	sorted := slices.Clone(engines)
	slices.SortStableFunc(sorted, func(a, b registry.Engine) int {
		return cmp.Or(
			cmp.Compare(b.Target.Specificity(), a.Target.Specificity()),
			cmp.Compare(bits(a.Precision), bits(b.Precision)),
			registry.CompareVersions(b.Toolchain.Version, a.Toolchain.Version),
			cmp.Compare(a.Digest, b.Digest))
	})
	return sorted
}

func preference(winner, loser registry.Engine) string {
	switch {
	case winner.Target.Specificity() != loser.Target.Specificity():
		return fmt.Sprintf("%s matches this node more closely", winner.Label())
	case bits(winner.Precision) != bits(loser.Precision):
		return fmt.Sprintf("%s has a lower precision and keeps the same release's limits", winner.Label())
	case registry.CompareVersions(winner.Toolchain.Version, loser.Toolchain.Version) != 0:
		return fmt.Sprintf("%s has the newer toolchain", winner.Label())
	default:
		return fmt.Sprintf("%s is equally good and has the lower digest", winner.Label())
	}
}

// bits returns the bit width of a precision. Unknown precisions sort last.
func bits(precision string) int {
	if n, ok := map[string]int{
		"int4": 4, "fp8": 8, "int8": 8, "fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64,
	}[precision]; ok {
		return n
	}
	return 1000
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
