package registry

import (
	"encoding/json"
	"fmt"
)

// judgeParity decides whether verifiers found that the engine computes what its
// reference computes. Reports count only if they are about this release's limits,
// sources and reference, on hardware that meets the target. Of several on one kind
// of hardware the latest counts; every kind that has one must pass. A performance
// report that failed its limits blocks like a failed parity report.
func judgeParity(req *Requirement, r Release, e Engine, cs counted) {
	parity, stale := cs.reports(PredicateParity, r, e)
	if len(parity) == 0 {
		req.Detail = "no report of a trusted verifier: run mlpromote verify on a machine that meets the target"
		if len(stale) > 0 {
			req.Detail = "no report counts: " + stale[0]
		}
		return
	}
	req.Met, req.Detail = true, "passed"
	for _, kind := range sortedKeys(parity) {
		report := parity[kind]
		req.cite(report.claim)
		if report.Verdict != VerdictPass {
			req.deny("%s", report.failure("parity"))
		}
		if req.Name == RequireRecordedCases && report.Cases.Origin != OriginRecorded {
			req.deny("its cases are %s: verify with recorded cases (cases: in mlpromote.yaml)", report.Cases.Origin)
		}
	}
	performance, _ := cs.reports(PredicatePerformance, r, e)
	for _, kind := range sortedKeys(performance) {
		if report := performance[kind]; report.Verdict != VerdictPass && report.Verdict != VerdictRecorded {
			req.cite(report.claim)
			req.deny("%s", report.failure("performance"))
		}
	}
	if len(e.Target.Witnesses) > 0 {
		req.deny("a pass is asked for on node types %v, and this registry knows no node types", e.Target.Witnesses)
	}
}

func (req *Requirement) deny(format string, args ...any) {
	if req.Met {
		req.Met, req.Detail = false, fmt.Sprintf(format, args...)
	}
}

// report is what policy reads of a parity or performance report.
type report struct {
	ReportHead
	Cases CasesRun `json:"cases"`
	claim Claim
}

func (r report) failure(what string) string {
	if len(r.Reasons) == 0 {
		return fmt.Sprintf("the %s verdict is %q", what, r.Verdict)
	}
	return fmt.Sprintf("the %s verdict is %q: %s", what, r.Verdict, r.Reasons[0].Message)
}

// reports gives the latest report of each kind of hardware that counts for the
// engine, and why others do not.
func (cs counted) reports(predicateType string, r Release, e Engine) (map[string]report, []string) {
	latest := make(map[string]report)
	var stale []string
	for _, c := range cs.of(predicateType, e.Digest) {
		next := report{claim: c}
		if err := json.Unmarshal(c.Statement.Predicate, &next); err != nil {
			stale = append(stale, "it cannot be read: "+err.Error())
			continue
		}
		if why := next.stale(predicateType, r, e); why != "" {
			stale = append(stale, why)
			continue
		}
		kind := next.Node.Kind()
		if have, ok := latest[kind]; !ok || next.supersedes(have) {
			latest[kind] = next
		}
	}
	return latest, stale
}

// supersedes orders reports of one kind of hardware. Of two that finished together
// the one that does not pass stands.
func (r report) supersedes(have report) bool {
	if r.FinishedOn.Equal(have.FinishedOn) {
		return r.Verdict != VerdictPass
	}
	return r.FinishedOn.After(have.FinishedOn)
}

// stale says why a report does not count for this release, or "".
func (r report) stale(predicateType string, release Release, e Engine) string {
	if !r.Limits.Names(release.Limits) {
		return "it was judged by other limits than this release's"
	}
	if !r.Sources.Names(release.Sources) || !r.Reference.Names(e.Reference) {
		return "it was made with other sources than this release's"
	}
	if r.Node.Runtimes[r.Runtime.Name] != r.Runtime.Version {
		return fmt.Sprintf("it ran on %s %s, which its node does not have", r.Runtime.Name, r.Runtime.Version)
	}
	if r.Verdict == VerdictPass && len(r.Reasons) > 0 {
		return "it says that it passed, and gives reasons why not"
	}
	if lacks := e.Target.Match(r.Node, r.Node.Runtime()); len(lacks) > 0 {
		return "it was made on hardware that is not the target: " + lacks[0].String()
	}
	if predicateType == PredicateParity && (r.Cases.Count < 1 || r.Cases.Ran != r.Cases.Count) {
		return fmt.Sprintf("it ran %d of %d cases", r.Cases.Ran, r.Cases.Count)
	}
	return ""
}
