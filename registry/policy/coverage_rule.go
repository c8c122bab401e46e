package policy

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// engineFor returns the engine that resolve will choose for a machine after the promotion. Without one, why says of each engine why not.
func (j judging) engineFor(n artifact.Node) (chosen artifact.Engine, why string, ok bool) {
	ranked := j.release.Ranked()
	at, fits := FirstFit(n, ranked, func(e artifact.Engine) []Requirement {
		return CheckEngineAfterPromotion(j.policy.Promotion.Resource, j.release, e, j.claims, j.policy.Promotion.Restrictions)
	})
	if at >= 0 {
		return ranked[at], "", true
	}
	var all []string
	for i, fit := range fits {
		all = append(all, ranked[i].Label()+": "+fit.Why())
	}
	return artifact.Engine{}, strings.Join(all, "; "), false
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
func (j judging) nodeType(t registry.Named[artifact.Node]) Requirement {
	req := Requirement{Subject: "node type " + t.Name}
	if kept, against, ok := j.counted.KeptFrom(j.release, t.Document); ok {
		req.cite(against.Claim)
		req.refuse("it does not get %s: %s, on a machine that it is or may be like, and no later report of such a machine passed",
			kept.Label(), against.Failure())
		return req
	}
	e, why, ok := j.engineFor(t.Document)
	if !ok {
		req.Detail = fmt.Sprintf("it gets no engine (%s): add a target that it meets to mlpromote.yaml, build and verify", why)
		return req
	}
	found, want := j.witnesses(t.Document, e), max(1, j.policy.Coverage.Witnesses)
	req.Met, req.Detail = true, fmt.Sprintf("it gets %s, shown by %s on such a machine", e.Label(), registry.Count(len(found.newest), "verifier"))
	for _, signer := range registry.SortedKeys(found.newest) {
		req.cite(found.newest[signer].Claim)
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

func withWhichKey(have int) string {
	if have == 0 {
		return "with the key of a verifier"
	}
	return "with the key of another verifier"
}

// witnesses are passing reports that were made on a machine of a node type.
type witnesses struct {
	newest map[string]evidence.Report // by key
	other  string                     // why a report of another machine, or one that lacks something, is none; empty: there is none
	failed bool                       // a report of a machine that is or may be like it did not pass, and none of such a machine passed after it
}

// witnesses finds the newest of each key, of those that meet what the policy asks of reports otherwise.
func (j judging) witnesses(t artifact.Node, e artifact.Engine) witnesses {
	found := witnesses{newest: make(map[string]evidence.Report)}
	all := j.counted.Proofs(j.release, e)
	if all.KeepsFrom(t) {
		found.failed, found.other = true, "a report of such a machine did not pass, and none of such a machine passed after it"
		return found
	}
	for _, pass := range all.Passes {
		broken, why := j.policy.brokenRule(pass, e, j.policy.passRules(e)...)
		if broken == passRecorded {
			why = "the cases of a report are " + registry.PlainText(pass.Cases.Origin)
		}
		if differs := pass.DiffersFrom(t); differs != "" {
			why = "a report was made on another machine: " + differs
		}
		have, ok := found.newest[pass.Claim.Signer]
		switch {
		case why != "":
			found.other = why
		case !ok || pass.Age().After(have.Age()):
			found.newest[pass.Claim.Signer] = pass
		}
	}
	return found
}

// NeedsNodeTypes reports whether what the policy decides about a release depends on the registered node
// types.
func (p Policy) NeedsNodeTypes(r artifact.Release) bool {
	return !p.Coverage.IsZero() || slices.ContainsFunc(r.Engines, func(e artifact.Engine) bool { return len(e.Target.RequiredNodeTypes) > 0 })
}
