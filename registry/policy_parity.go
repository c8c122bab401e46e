package registry

import (
	"fmt"
	"slices"
)

// judgeParity decides whether verifiers found that the engine computes what its reference
// computes. Reports count only if they are about this release's limits, sources and reference,
// on hardware that meets the target. A pass must be complete. A report that did not pass, even
// an incomplete one, keeps the engine from nodes like its machine until a later pass on a machine of the same kind heals it, and
// denies if no pass on another machine counts. A
// performance report that failed its limits does the same.
func (p Policy) judgeParity(req *Requirement, r Release, e Engine, cs counted) {
	parity := cs.proofs(r, e)
	if req.Name == RequireRecordedCases && len(parity.passes) == 0 && p.paritySaysSo() {
		judgeOrigin(req, parity)
		return
	}
	passes := parity.newest(p.compared)
	req.Met, req.Detail = true, "passed"
	parity.refuse(req)
	if len(passes) == 0 {
		req.deny("%s", noPass(parity.stale))
	}
	for _, kind := range sortedKeys(passes) {
		pass := passes[kind]
		req.cite(pass.claim)
		if !p.compared(pass) {
			req.deny("%s", p.comparedWithAnother(pass))
		}
		if req.Name == RequireRecordedCases && pass.Cases.Origin != OriginRecorded {
			req.deny("its cases are %s: set cases in mlpromote.yaml to recorded ones, build and verify", pass.Cases.Origin)
		}
	}
	p.judgeRequiredNodeTypes(req, r, e, cs)
	if req.Met && len(parity.against) > 0 {
		req.Detail = "passed; kept from " + parity.against[0].kept()
	}
}

// paritySaysSo reports whether [RequireParity] says that no report passed, so that no other requirement does. Where break-glass skips
// requirements, each that is unmet has to be skipped by its name.
func (p Policy) paritySaysSo() bool {
	return slices.Contains(p.Require, RequireParity) && !p.Promotion.BreakGlass
}

// judgeOrigin decides about the cases of reports that did not pass. That none passed is for the requirement [RequireParity] to say.
func judgeOrigin(req *Requirement, parity findings) {
	req.Met, req.Detail = true, "no report counts whose cases were not recorded"
	for _, against := range parity.against {
		if origin := against.Cases.Origin; origin != "" && origin != OriginRecorded {
			req.cite(against.claim)
			req.deny("its cases are %s: set cases in mlpromote.yaml to recorded ones, build and verify", PlainText(origin))
		}
	}
}

// compared reports whether a pass compared with what the promotion replaces, if it compared at all.
func (p Policy) compared(pass report) bool {
	if p.Promotion.Replay || pass.Destination == nil {
		return true
	}
	d := *pass.Destination
	none := p.Promotion.Head == "" && len(d.Release) == 0
	return d.Environment == p.Promotion.Environment && (none || d.Release.Names(p.Promotion.Head))
}

func (p Policy) comparedWithAnother(pass report) string {
	d := pass.Destination
	return fmt.Sprintf("it was compared with %s of %s, and %s has %s now: run mlpromote verify again",
		shown(d.Release.SHA256()), PlainText(d.Environment), p.Promotion.Environment, shown(p.Promotion.Head))
}

func shown(release Digest) string {
	if release == "" {
		return "no release"
	}
	return "release " + string(release)
}

// judgeFailures decides whether every report of a trusted verifier that did not pass was
// healed, or leaves nodes that may have the engine because a pass on such a machine counts. It does not require a pass.
func judgeFailures(req *Requirement, r Release, e Engine, cs counted) {
	req.Met, req.Detail = true, "no unhealed failure of a verifier"
	found := cs.proofs(r, e)
	found.refuse(req)
	if req.Met && len(found.against) > 0 {
		req.against, req.Detail = found.against, "it is kept from "+found.against[0].kept()
	}
}

// SomeNodes reports whether the requirement is unmet for some nodes only: [Requirement.On] says for which.
func (req Requirement) SomeNodes() bool { return !req.Met && len(req.against) > 0 }

// Size is about how many bytes of memory the requirement needs beside its texts.
func (req Requirement) Size() int {
	const each = 2 << 10
	return each * len(req.against)
}

// On decides the requirement for one node: what keeps an engine from some nodes is met for the others. detail says why it is unmet.
func (req Requirement) On(n Node) (met bool, detail string) {
	if !req.SomeNodes() {
		return req.Met, req.Detail
	}
	for _, against := range req.against {
		if !against.keepsFrom(n) {
			continue
		}
		if open := against.unstated(n); open != "" {
			return false, fmt.Sprintf("%s; the node may be like the machine of that report: it does not state %s", against.failure(), PlainText(open))
		}
		return false, against.failure() + "; the node is like the machine of that report"
	}
	return true, ""
}

// UnmetOn lists the requirements that are not met for a node, with the reason in their detail.
func (d Decision) UnmetOn(n Node) []Requirement { return unmetOn(n, d.Unmet()) }

func unmetOn(n Node, requirements []Requirement) []Requirement {
	var unmet []Requirement
	for _, req := range requirements {
		var met bool
		if met, req.Detail = req.On(n); !met {
			unmet = append(unmet, req)
		}
	}
	return unmet
}

func noPass(stale []string) string {
	if len(stale) > 0 {
		return "no report counts: " + stale[0]
	}
	return "no report of a trusted verifier: run mlpromote verify on a machine that meets the target"
}

// deny marks the requirement as unmet because something is missing, unless it is unmet already.
func (req *Requirement) deny(format string, args ...any) {
	if req.Met {
		req.Met, req.Detail = false, fmt.Sprintf(format, args...)
	}
}

// refuse marks the requirement as unmet because something speaks against the release. The first such reason goes
// before what is missing.
func (req *Requirement) refuse(format string, args ...any) {
	if !req.Refused {
		req.Met, req.Refused, req.Detail = false, true, fmt.Sprintf(format, args...)
	}
}
