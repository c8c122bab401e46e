package validators

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// ReasonProvider is the code of reasons about execution providers.
const ReasonProvider = "provider"

// JudgeProviders holds who ran an engine against the execution providers that it
// declares, the preferred one first. It fails where the preferred one ran nothing, or
// where one ran something that is not declared: the engine would be another one than was
// proven, as soon as it meets a machine where the preferred provider works. An engine
// that declares none passes.
func JudgeProviders(declared []registry.Provider, shares []registry.ProviderShare) []registry.Reason {
	if len(declared) == 0 {
		return nil
	}
	total, nodes := 0, make(map[string]int)
	for _, s := range shares {
		total += s.Nodes
		nodes[s.Name] += s.Nodes
	}
	var reasons []registry.Reason
	fail := func(format string, args ...any) {
		reasons = append(reasons, registry.Reason{Code: ReasonProvider, Message: fmt.Sprintf(format, args...)})
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

func describeShares(shares []registry.ProviderShare) string {
	if len(shares) == 0 {
		return "the runtime does not say who ran them"
	}
	var all []string
	for _, s := range shares {
		all = append(all, fmt.Sprintf("%s ran %d", s.Name, s.Nodes))
	}
	return strings.Join(all, ", ")
}
