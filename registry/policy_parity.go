package registry

import "fmt"

// judgeParity decides whether verifiers found that the engine computes what its reference
// computes. Reports count only if they are about this release's limits, sources and reference,
// on hardware that meets the target. A pass must be complete. A report that did not pass, even
// an incomplete one, denies until a later pass on the same kind of hardware heals it. A
// performance report that failed its limits denies like a failed parity report.
func (p Policy) judgeParity(req *Requirement, r Release, e Engine, cs counted) {
	parity := cs.findings(PredicateParity, r, e)
	passes := parity.newest(p.compared)
	req.Met, req.Detail = true, "passed"
	parity.refuse(req, "parity")
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
	cs.findings(PredicatePerformance, r, e).refuse(req, "performance")
	p.judgeRequiredNodeTypes(req, r, e, cs)
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
// healed. It does not require a pass.
func judgeFailures(req *Requirement, r Release, e Engine, cs counted) {
	req.Met, req.Detail = true, "no unhealed failure of a verifier"
	cs.findings(PredicateParity, r, e).refuse(req, "parity")
	cs.findings(PredicatePerformance, r, e).refuse(req, "performance")
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
