package registry

import (
	"fmt"
	"slices"
	"strings"
)

// engineFor returns the engine that resolve will choose for a machine after the promotion. Without one, why says of each engine why not.
func (j judging) engineFor(n Node) (chosen Engine, why string, ok bool) {
	ranked := j.release.Ranked()
	at, fits := FirstFit(n, ranked, func(e Engine) []Requirement {
		return CheckEngineAfterPromotion(j.policy.Promotion.Resource, j.release, e, j.claims, j.policy.Promotion.Restrictions)
	})
	if at >= 0 {
		return ranked[at], "", true
	}
	var all []string
	for i, fit := range fits {
		all = append(all, ranked[i].Label()+": "+fit.Why())
	}
	return Engine{}, strings.Join(all, "; "), false
}

// judgeCoverage decides for each node type of the rule whether it gets an engine that was shown on it.
func judgeCoverage(j judging) []Requirement {
	known := j.policy.Promotion.NodeTypes
	if !known.known {
		return []Requirement{{Subject: subjectRelease, Detail: "which node types are registered is not known here"}}
	}
	var all []Requirement
	seen := make(map[string]bool)
	for _, name := range j.policy.Coverage.NodeTypes {
		selected := known.selected(name)
		if len(selected) == 0 {
			all = append(all, Requirement{Subject: "node type " + name, Detail: "no such node type is registered: " +
				"run mlpromote node describe on such a machine, and mlpromote node-type put NAME FILE"})
		}
		for _, t := range selected {
			if !seen[t.Name] {
				all = append(all, j.nodeType(t))
			}
			seen[t.Name] = true
		}
	}
	if len(all) == 0 {
		return []Requirement{{Subject: subjectRelease, Detail: "the policy names no node type"}}
	}
	return all
}

// nodeType decides whether one node type gets an engine, and whether enough verifiers found on such
// a machine that it passes.
func (j judging) nodeType(t Named[Node]) Requirement {
	req := Requirement{Subject: "node type " + t.Name}
	if kept, against, ok := j.counted.keptFrom(j.release, t.Document); ok {
		req.cite(against.claim)
		req.refuse("it does not get %s: %s, on a machine that it is or may be like, and no later report of such a machine passed",
			kept.Label(), against.failure())
		return req
	}
	e, why, ok := j.engineFor(t.Document)
	if !ok {
		req.Detail = fmt.Sprintf("it gets no engine (%s): add a target that it meets to mlpromote.yaml, build and verify", why)
		return req
	}
	found, want := j.witnesses(t.Document, e), max(1, j.policy.Coverage.Witnesses)
	req.Met, req.Detail = true, fmt.Sprintf("it gets %s, shown by %s on such a machine", e.Label(), Count(len(found.newest), "verifier"))
	for _, signer := range sortedKeys(found.newest) {
		req.cite(found.newest[signer].claim)
	}
	req.until = j.policy.agesAt(found.newest, want)
	if len(found.newest) < want {
		text := fmt.Sprintf("%s, and %d must have found that it passes", req.Detail, want)
		if found.other != "" {
			text += "; " + found.other
		}
		req.Unshown = true
		req.deny("%s: run mlpromote verify on a machine of this type, %s", text, withWhichKey(len(found.newest)))
	}
	return req
}

// keptFrom returns the first engine that a node could run and that a report keeps from it, where a pass on another machine counts:
// without one, the engine is kept from all nodes.
func (cs counted) keptFrom(r Release, n Node) (e Engine, against report, ok bool) {
	for _, e := range r.Ranked() {
		if len(e.Target.Match(n, n.Runtime())) > 0 {
			continue
		}
		found := cs.proofs(r, e)
		if at := slices.IndexFunc(found.against, func(a report) bool { return a.keepsFrom(n) }); at >= 0 && len(found.passes) > 0 {
			return e, found.against[at], true
		}
	}
	return Engine{}, report{}, false
}

func withWhichKey(have int) string {
	if have == 0 {
		return "with the key of a verifier"
	}
	return "with the key of another verifier"
}

// witnesses are passing reports that were made on a machine of a node type.
type witnesses struct {
	newest map[string]report // by key
	other  string            // why a report of another machine, or one that lacks something, is none; empty: there is none
	failed bool              // a report of a machine that is or may be like it did not pass, and none of such a machine passed after it
}

// witnesses finds the newest of each key, of those that meet what the policy asks of reports otherwise.
func (j judging) witnesses(t Node, e Engine) witnesses {
	found := witnesses{newest: make(map[string]report)}
	all := j.counted.proofs(j.release, e)
	if all.keepsFrom(t) {
		found.failed, found.other = true, "a report of such a machine did not pass, and none of such a machine passed after it"
		return found
	}
	for _, pass := range all.passes {
		broken, why := j.policy.brokenRule(pass, e, j.policy.passRules(e)...)
		if broken == passRecorded {
			why = "the cases of a report are " + PlainText(pass.Cases.Origin)
		}
		if differs := pass.differsFrom(t); differs != "" {
			why = "a report was made on another machine: " + differs
		}
		have, ok := found.newest[pass.claim.Signer]
		switch {
		case why != "":
			found.other = why
		case !ok || pass.age().After(have.age()):
			found.newest[pass.claim.Signer] = pass
		}
	}
	return found
}

// NeedsNodeTypes reports whether what the policy decides about a release depends on the registered node
// types.
func (p Policy) NeedsNodeTypes(r Release) bool {
	return !p.Coverage.IsZero() || slices.ContainsFunc(r.Engines, func(e Engine) bool { return len(e.Target.RequiredNodeTypes) > 0 })
}
