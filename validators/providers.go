package validators

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// ReasonProvider is the code of reasons about execution providers.
const ReasonProvider = "provider"

// JudgeProviders compares the execution providers that ran an engine with those that it
// declares, the preferred one first. It fails if the preferred provider ran no graph node, or
// if an undeclared provider ran one. Otherwise the engine would behave differently from its
// verification on a machine where the preferred provider works. An engine that declares no
// providers passes.
func JudgeProviders(declared []artifact.Provider, shares []evidence.ProviderShare) []evidence.Reason {
	if len(declared) == 0 {
		return nil
	}
	total, nodes := 0, make(map[string]int)
	for _, s := range shares {
		total += s.Nodes
		nodes[s.Name] += s.Nodes
	}
	var reasons []evidence.Reason
	fail := func(format string, args ...any) {
		reasons = append(reasons, evidence.Reason{Code: ReasonProvider, Message: fmt.Sprintf(format, args...)})
	}
	var names []string
	for _, p := range declared {
		names = append(names, p.Name)
	}
	if nodes[names[0]] == 0 {
		fail("the engine is for %s, which did not run any of its %d nodes: %s", names[0], total, describeShares(shares))
		return reasons
	}
	for _, s := range shares {
		if s.Nodes > 0 && !slices.Contains(names, s.Name) {
			fail("%s ran %d of %d nodes, and the engine declares %s: install what runs all of them, or declare %s too",
				s.Name, s.Nodes, total, strings.Join(names, ", "), s.Name)
		}
	}
	return reasons
}

func describeShares(shares []evidence.ProviderShare) string {
	if len(shares) == 0 {
		return "the runtime does not report which provider ran them"
	}
	var all []string
	for _, s := range shares {
		all = append(all, fmt.Sprintf("%s ran %d", s.Name, s.Nodes))
	}
	return strings.Join(all, ", ")
}
