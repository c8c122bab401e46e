package policy

import (
	"fmt"

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
