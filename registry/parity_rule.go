package registry

import "slices"

// judgeParity decides whether verifiers found that the engine computes what its reference
// computes.
func judgeParity(j judging, req *Requirement, e Engine) {
	judgeVerified(j, req, e, passCompared)
}

// judgeRecordedCases decides like judgeParity, and whether the passes ran recorded cases.
func judgeRecordedCases(j judging, req *Requirement, e Engine) {
	if found := j.counted.proofs(j.release, e); len(found.passes) == 0 && j.policy.parityRefuses() {
		judgeOrigin(req, found)
		return
	}
	judgeVerified(j, req, e, passCompared, passRecorded)
}

func judgeVerified(j judging, req *Requirement, e Engine, rules ...passRule) {
	found := judgePasses(j, req, e, "passed", rules...)
	judgeRequiredNodeTypes(j, req, e)
	if req.Met && len(found.against) > 0 {
		req.Detail = "passed; kept from " + found.against[0].kept()
	}
}

// parityRefuses reports whether [RequireParity] refuses a release without a pass, so that no other requirement does. Where break-glass
// skips requirements, each that is unmet has to be skipped by its name.
func (p Policy) parityRefuses() bool {
	return slices.Contains(p.Require, RequireParity) && !p.Promotion.BreakGlass
}

// judgeOrigin decides about the cases of reports that did not pass. [RequireParity] refuses what has no pass.
func judgeOrigin(req *Requirement, found findings) {
	req.Met, req.Detail = true, "no report counts whose cases were not recorded"
	for _, against := range found.against {
		if origin := against.Cases.Origin; origin != "" && origin != OriginRecorded {
			req.cite(against.claim)
			req.deny("%s", unrecorded(origin))
		}
	}
}

// judgeFailures decides whether every report of a trusted verifier that did not pass was
// healed, or leaves nodes that may have the engine because a pass on such a machine counts. It does not require a pass.
func judgeFailures(j judging, req *Requirement, e Engine) {
	req.Met, req.Detail = true, "no unhealed failure of a verifier"
	found := j.counted.proofs(j.release, e)
	found.refuse(req)
	if req.Met && len(found.against) > 0 {
		req.against, req.Detail = found.against, "it is kept from "+found.against[0].kept()
	}
}

// judgeRequiredNodeTypes denies if an engine whose target names node types has no pass on one of them.
func judgeRequiredNodeTypes(j judging, req *Requirement, e Engine) {
	for _, name := range e.Target.RequiredNodeTypes {
		found := j.policy.Promotion.NodeTypes.selected(name)
		if len(found) == 0 || found[0].Name != name {
			req.deny("the target requires a pass on node type %s, and none of this name is known here: run mlpromote node-type put %s FILE", PlainText(name), PlainText(name))
			continue
		}
		t := found[0].Document
		if lacks := e.Target.Match(t, t.Runtime()); len(lacks) > 0 {
			req.deny("the target requires a pass on node type %s, which is no machine for it: %s", name, lacks[0])
		}
		shown := j.witnesses(t, e)
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
