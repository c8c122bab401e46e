package artifact

import (
	"cmp"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// preference is one reason for which a node gets an engine before another.
type preference struct {
	compare func(a, b Engine) int // negative: a comes first
	reason  string                // of the one that comes first, after its label
}

// preferences lists the reasons in their order: the first in which two engines differ decides. named has the
// place at which a spec first names a toolchain. Engines that are equal in all of them stay in the order of the spec.
func preferences(named map[string]int) []preference {
	return []preference{
		{func(a, b Engine) int { return cmp.Compare(accelerated(b), accelerated(a)) }, "is for an accelerator"},
		{func(a, b Engine) int { return cmp.Compare(named[a.Toolchain.Name], named[b.Toolchain.Name]) }, "is by the toolchain that the spec names first"},
		{func(a, b Engine) int { return cmp.Compare(b.Target.Specificity(), a.Target.Specificity()) }, "asks for more of the processor"},
	}
}

// accelerated is 1 for an engine that needs an accelerator, and 0 for others.
func accelerated(e Engine) int {
	if e.Target.Accelerator != nil {
		return 1
	}
	return 0
}

// OrderEngines puts what a spec lists into the order in which nodes get it: of the engines that a node can run and that
// nothing speaks against, it gets the first. Engines for an accelerator come before others; then toolchains in the order
// in which the spec first names them; then targets that ask for more of the processor; then the order of the spec. engine
// describes an element by its target and the name of its toolchain. listed has every engine of the spec, because one that is not
// built names its toolchain too.
func OrderEngines[T any](listed []T, engine func(T) Engine) []T {
	named := make(map[string]int)
	for i, e := range listed {
		name := engine(e).Toolchain.Name
		if _, again := named[name]; !again {
			named[name] = i
		}
	}
	ordered, rules := slices.Clone(listed), preferences(named)
	slices.SortStableFunc(ordered, func(a, b T) int {
		for _, p := range rules {
			if c := p.compare(engine(a), engine(b)); c != 0 {
				return c
			}
		}
		return 0
	})
	return ordered
}

// WhyPreferred says why a release has winner before loser. It reads engines alone: a release that does not
// have the order of [OrderEngines] has its own order as the reason.
func WhyPreferred(winner, loser Engine) string {
	// Of two toolchains, the spec named that of the winner first.
	for _, p := range preferences(map[string]int{winner.Toolchain.Name: -1}) {
		switch c := p.compare(winner, loser); {
		case c < 0:
			return winner.Label() + " " + p.reason
		case c > 0:
			return winner.Label() + " comes first in the order of the release"
		}
	}
	return winner.Label() + " comes first in the spec"
}

// Ranked returns the engines of the release in the order in which nodes get them: the first that a node can run and that
// nothing speaks against. Engines that [Release.Order] does not name come last.
func (r Release) Ranked() []Engine {
	place := make(map[registry.Digest]int, len(r.Order))
	for i, d := range r.Order {
		place[d] = i - len(r.Order) // below 0, which is the place of the others
	}
	ranked := slices.Clone(r.Engines)
	slices.SortStableFunc(ranked, func(a, b Engine) int { return cmp.Compare(place[a.Digest], place[b.Digest]) })
	return ranked
}

// NodeEngine is the engine that a node type gets of a release.
type NodeEngine struct {
	NodeType string          `json:"nodeType"`
	Engine   registry.Digest `json:"engine,omitempty"` // empty: none
	Label    string          `json:"label,omitempty"`
}

// String describes it: "g6.xlarge -> gpu/fp16".
func (n NodeEngine) String() string { return n.NodeType + " -> " + cmp.Or(n.Label, "no engine") }
