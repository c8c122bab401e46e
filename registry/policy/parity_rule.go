package policy

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// judgeParity decides whether verifiers found that the engine computes what its reference
// computes.
func judgeParity(j judging, req *Requirement, e artifact.Engine) {
	judgeVerified(j, req, e, passCompared)
}

// judgeRecordedCases decides like judgeParity, and whether the passes ran recorded cases.
func judgeRecordedCases(j judging, req *Requirement, e artifact.Engine) {
	if found := j.counted.Proofs(j.release, e); len(found.Passes) == 0 && j.policy.parityRefuses() {
		judgeOrigin(req, found)
		return
	}
	judgeVerified(j, req, e, passCompared, passRecorded)
}

func judgeVerified(j judging, req *Requirement, e artifact.Engine, rules ...passRule) {
	found := judgePasses(j, req, e, "passed", rules...)
	judgeRequiredNodeTypes(j, req, e)
	if req.Met && len(found.Against) > 0 {
		req.Detail = "passed; kept from " + found.Against[0].Kept()
	}
}

// judgeOrigin decides about the cases of reports that did not pass. [RequireParity] refuses what has no pass.
func judgeOrigin(req *Requirement, found evidence.Findings) {
	req.Met, req.Detail = true, "no report counts whose cases were not recorded"
	for _, against := range found.Against {
		if origin := against.Cases.Origin; origin != "" && origin != artifact.OriginRecorded {
			req.cite(against.Claim)
			req.deny("%s", unrecorded(origin))
		}
	}
}

// judgeRequiredNodeTypes denies if an engine whose target names node types has no pass on one of them.
func judgeRequiredNodeTypes(j judging, req *Requirement, e artifact.Engine) {
	for _, name := range e.Target.RequiredNodeTypes {
		found := j.policy.Promotion.NodeTypes.selected(name)
		if len(found) == 0 || found[0].Name != name {
			req.deny("the target requires a pass on node type %s, and none of this name is known here: run mlpromote node-type put %s FILE", registry.PlainText(name), registry.PlainText(name))
			continue
		}
		t := found[0].Document
		if lacks := e.Target.Match(t, t.Runtime()); len(lacks) > 0 {
			req.deny("the target requires a pass on node type %s, which is no machine for it: %s", name, lacks[0])
		}
		shown := j.witnesses(t, e)
		for _, signer := range registry.SortedKeys(shown.newest) {
			req.cite(shown.newest[signer].Claim)
		}
		if shown.failed {
			req.refuse("the target requires a pass on node type %s: %s", name, shown.other)
		}
		if len(shown.newest) == 0 {
			req.deny("the target requires a pass on node type %s: run mlpromote verify on a machine of this type", name)
		}
	}
}

// judgeAccuracy decides whether every kind of hardware has a pass that shows the accuracy.
func judgeAccuracy(j judging, req *Requirement, e artifact.Engine) {
	if j.policy.Accuracy == nil {
		req.Detail = "the policy does not say which accuracy"
		return
	}
	judgePasses(j, req, e, "shown by a verifier", passAccuracy)
}

// judgeCeilings decides whether no limit on an output is looser than the ceiling of its precision.
func judgeCeilings(j judging, req *Requirement, e artifact.Engine) {
	if _, listed := j.policy.Ceilings[e.Precision]; !listed {
		req.Detail = fmt.Sprintf("there are ceilings, but not for %s: add %s to ceilings in environments.yaml, {} for no ceiling", e.Precision, e.Precision)
		return
	}
	judgePasses(j, req, e, "shown by a verifier", passCeilings)
}

// judgeReports decides whether enough verifiers made a passing parity report of the engine, each
// recently enough. A report counts only if it meets what the policy asks of reports otherwise, and a
// failure that was not healed denies unless a pass on another machine counts, as everywhere.
func judgeReports(j judging, req *Requirement, e artifact.Engine) {
	p, want := j.policy, max(1, j.policy.Reports.Verifiers)
	parity := j.counted.Proofs(j.release, e)
	if want == 1 && len(parity.Passes) == 0 && p.parityRefuses() { // in the words of [RequireParity], so that a refusal says it once
		req.Met = true
		refuseFindings(parity, req)
		req.deny("%s", parity.NoPass())
		return
	}
	rules := []passRule{passFresh, passCases}
	if slices.Contains(p.Require, RequireRecordedCases) {
		rules = append(rules, passRecorded)
	}
	rules = append(rules, passCompared)
	fresh, few, broken := make(map[string]evidence.Report), 0, make(map[passRule]int) // the newest by key, and passes by the rule that they break
	for _, pass := range parity.Passes {
		rule, _ := p.brokenRule(pass, e, rules...)
		switch have, ok := fresh[pass.Claim.Signer]; {
		case rule != 0:
			if broken[rule]++; rule == passCases {
				few = max(few, evidence.CasesOf(pass))
			}
		case !ok || pass.Age().After(have.Age()):
			fresh[pass.Claim.Signer] = pass
		}
	}
	for _, signer := range registry.SortedKeys(fresh) {
		req.cite(fresh[signer].Claim)
	}
	req.Met, req.Detail, req.until = true, p.freshReports(len(fresh)), p.agesAt(fresh, want)
	if len(fresh) < want {
		text := fmt.Sprintf("%s, and %d must have found that it passes", req.Detail, want)
		if old := broken[passFresh]; old > 0 {
			text += fmt.Sprintf("; %s of earlier do not count", registry.Count(old, "report"))
		}
		switch {
		case broken[passRecorded] > 0:
			req.deny("%s; reports on cases that were not recorded do not count: build with recorded cases, and verify", text)
		case broken[passCases] > 0:
			req.deny("%s; one shows %s of the %d that are wanted: build with more cases, and verify", text, registry.Count(few, "case"), p.Reports.Cases)
		default:
			req.deny("%s: run mlpromote verify with the key of another verifier, or again", text)
		}
	}
	refuseFindings(parity, req)
}

func (p Policy) freshReports(verifiers int) string {
	text := "passing reports of " + registry.Count(verifiers, "verifier")
	if p.Reports.Cases > 0 {
		text += fmt.Sprintf(" with %d cases or more", p.Reports.Cases)
	}
	if p.Reports.MaxAge > 0 {
		text += fmt.Sprintf(" from the last %v", p.Reports.MaxAge)
	}
	return text
}
