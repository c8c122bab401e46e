package registry

import (
	"fmt"
	"slices"
	"strings"
)

// requireCoverage applies in every environment with a [CoverageRule].
const requireCoverage = "coverage"

// CoverageRule says which node types must get an engine of every release that is promoted, and of how
// many verifiers that engine must have a pass that was made on a machine of the type. The zero
// CoverageRule asks for nothing.
type CoverageRule struct {
	// NodeTypes are names of registered node types. One that ends in "*" stands for all whose names
	// begin with the rest, of which there must be one at least.
	NodeTypes []string `json:"nodeTypes,omitempty"`
	// Witnesses is how many different keys must have found on such a machine that the engine passes; 0
	// is 1.
	Witnesses int `json:"witnesses,omitempty"`
}

// IsZero reports whether the rule asks for nothing.
func (rule CoverageRule) IsZero() bool { return len(rule.NodeTypes) == 0 && rule.Witnesses == 0 }

// String describes the rule: "engines for node types edge-*, h200, each shown by 2 verifiers there".
func (rule CoverageRule) String() string {
	return fmt.Sprintf("engines for node types %s, each shown by %s there", strings.Join(rule.NodeTypes, ", "), Count(max(1, rule.Witnesses), "verifier"))
}

// Validate checks the form of a rule. Errors: CodeInvalid.
func (rule CoverageRule) Validate() error {
	switch {
	case rule.IsZero():
		return nil
	case len(rule.NodeTypes) == 0:
		return Errorf(CodeInvalid, "coverage: node-types is missing: want names of node types, or \"*\" for all that are registered")
	case rule.Witnesses < 0 || rule.Witnesses > 100:
		return Errorf(CodeInvalid, "coverage: witnesses %d: want 1 to 100", rule.Witnesses)
	}
	for i, name := range rule.NodeTypes {
		first := name
		if prefix, pattern := strings.CutSuffix(name, "*"); pattern {
			first = prefix + "x" // a name that the pattern stands for
		}
		if err := ValidateName(first); err != nil {
			return Errorf(CodeInvalid, "coverage: node type %.100q: want a name, or the beginning of names and \"*\"", name)
		}
		if slices.Contains(rule.NodeTypes[:i], name) {
			return Errorf(CodeInvalid, "coverage: node type %s is listed twice", name)
		}
	}
	return nil
}

// KnownNodeTypes are the node types that are registered at one time. The zero KnownNodeTypes is not
// known, and refuses every release that has to be shown on one.
type KnownNodeTypes struct {
	known bool
	list  []Named[Node]
}

// NewKnownNodeTypes returns all node types that are registered.
func NewKnownNodeTypes(all []Named[Node]) KnownNodeTypes { return KnownNodeTypes{true, all} }

// Digest identifies names and documents, so that a change between two readings shows. Errors:
// CodeInternal.
func (k KnownNodeTypes) Digest() (Digest, error) {
	return CanonicalDigest(append([]Named[Node]{}, k.list...))
}

// selected lists the node types that a name of a [CoverageRule] stands for.
func (k KnownNodeTypes) selected(name string) []Named[Node] {
	prefix, pattern := strings.CutSuffix(name, "*")
	var found []Named[Node]
	for _, t := range k.list {
		if t.Name == name || pattern && strings.HasPrefix(t.Name, prefix) {
			found = append(found, t)
		}
	}
	return found
}

// NeedsNodeTypes reports whether what the policy decides about a release depends on the registered node
// types.
func (p Policy) NeedsNodeTypes(r Release) bool {
	return !p.Coverage.IsZero() || slices.ContainsFunc(r.Engines, func(e Engine) bool { return len(e.Target.RequiredNodeTypes) > 0 })
}

// engineFor returns the engine that resolve will choose for a machine: the best one that it can run and
// that nothing speaks against. Without one, why says of each engine why not.
func (p Policy) engineFor(r Release, n Node, claims []Claim) (chosen Engine, why []string, ok bool) {
	for _, e := range r.Ranked() {
		if lacks := e.Target.Match(n, n.Runtime()); len(lacks) > 0 {
			why = append(why, e.Label()+": "+lacks[0].String())
			continue
		}
		unmet := unmetOn(n, CheckEngineAfterPromotion(p.Promotion.Resource, r, e, claims, p.Promotion.Restrictions))
		if len(unmet) == 0 {
			return e, nil, true
		}
		why = append(why, e.Label()+": "+unmet[0].Detail)
	}
	return Engine{}, why, false
}

// judgeCoverage decides for each node type of the rule whether it gets an engine that was shown on it.
func (p Policy) judgeCoverage(r Release, claims []Claim, cs counted) []Requirement {
	if !p.Promotion.NodeTypes.known {
		return []Requirement{{Name: requireCoverage, Subject: "release", Detail: "which node types are registered is not known here"}}
	}
	if len(p.Coverage.NodeTypes) == 0 {
		return []Requirement{{Name: requireCoverage, Subject: "release", Detail: "the policy names no node type"}}
	}
	var out []Requirement
	seen := make(map[string]bool)
	for _, name := range p.Coverage.NodeTypes {
		selected := p.Promotion.NodeTypes.selected(name)
		if len(selected) == 0 {
			out = append(out, Requirement{Name: requireCoverage, Subject: "node type " + name, Detail: "no such node type is registered: " +
				"run mlpromote node describe on such a machine, and mlpromote node-type put NAME FILE"})
		}
		for _, t := range selected {
			if !seen[t.Name] {
				out = append(out, p.judgeNodeType(t, r, claims, cs))
			}
			seen[t.Name] = true
		}
	}
	return out
}

// judgeNodeType decides whether one node type gets an engine, and whether enough verifiers found on such
// a machine that it passes.
func (p Policy) judgeNodeType(t Named[Node], r Release, claims []Claim, cs counted) Requirement {
	req := Requirement{Name: requireCoverage, Subject: "node type " + t.Name}
	if kept, against, ok := cs.keptFrom(r, t.Document); ok {
		req.cite(against.claim)
		req.refuse("it does not get %s: %s, on a machine that it is or may be like, and no later report of such a machine passed",
			kept.Label(), against.failure())
		return req
	}
	e, why, ok := p.engineFor(r, t.Document, claims)
	if !ok {
		req.Detail = fmt.Sprintf("it gets no engine (%s): add a target that it meets to mlpromote.yaml, build and verify", strings.Join(why, "; "))
		return req
	}
	found, want := p.witnesses(t.Document, r, e, cs), max(1, p.Coverage.Witnesses)
	req.Met, req.Detail = true, fmt.Sprintf("it gets %s, shown by %s on such a machine", e.Label(), Count(len(found.newest), "verifier"))
	for _, signer := range sortedKeys(found.newest) {
		req.cite(found.newest[signer].claim)
	}
	if len(found.newest) < want {
		text := fmt.Sprintf("%s, and %d must have found that it passes", req.Detail, want)
		if found.other != "" {
			text += "; " + found.other
		}
		req.deny("%s: run mlpromote verify on a machine of this type, %s", text, withWhichKey(len(found.newest)))
	} else {
		req.until = p.agesAt(found.newest, want)
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
func (p Policy) witnesses(t Node, r Release, e Engine, cs counted) witnesses {
	found := witnesses{newest: make(map[string]report)}
	all := cs.proofs(r, e)
	if all.keepsFrom(t) {
		found.failed, found.other = true, "a report of such a machine did not pass, and none of such a machine passed after it"
		return found
	}
	for _, pass := range all.passes {
		why := p.refusesPass(pass, e)
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

// refusesPass says why a pass does not meet what the policy asks of reports, or is "".
func (p Policy) refusesPass(pass report, e Engine) string {
	switch {
	case p.aged(pass):
		return "a report is too old"
	case !p.compared(pass):
		return p.comparedWithAnother(pass)
	case casesOf(pass) < p.Reports.Cases:
		return fmt.Sprintf("a report shows %s of the %d that are wanted", Count(casesOf(pass), "case"), p.Reports.Cases)
	case slices.Contains(p.Require, RequireRecordedCases) && pass.Cases.Origin != OriginRecorded:
		return "the cases of a report are " + PlainText(pass.Cases.Origin)
	}
	if p.Accuracy != nil {
		if why := p.lacksAccuracy(pass, e); why != "" {
			return why
		}
	}
	if _, listed := p.Ceilings[e.Precision]; listed {
		return p.Ceilings.above(pass, e.Precision)
	}
	return ""
}

// judgeRequiredNodeTypes denies if an engine whose target names node types has no pass on one of them.
func (p Policy) judgeRequiredNodeTypes(req *Requirement, r Release, e Engine, cs counted) {
	for _, name := range e.Target.RequiredNodeTypes {
		found := p.Promotion.NodeTypes.selected(name)
		if len(found) == 0 || found[0].Name != name {
			req.deny("the target requires a pass on node type %s, and none of this name is known here: run mlpromote node-type put %s FILE", PlainText(name), PlainText(name))
			continue
		}
		t := found[0].Document
		if lacks := e.Target.Match(t, t.Runtime()); len(lacks) > 0 {
			req.deny("the target requires a pass on node type %s, which is no machine for it: %s", name, lacks[0])
		}
		shown := p.witnesses(t, r, e, cs)
		for _, signer := range sortedKeys(shown.newest) {
			req.cite(shown.newest[signer].claim)
		}
		if shown.failed {
			req.refuse("the target requires a pass on node type %s: %s", name, shown.other)
		}
		if len(shown.newest) == 0 {
			req.deny("the target requires a pass on node type %s: run mlpromote verify on a machine of this type", name)
		}
	}
}
