package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// findings are the reports about an engine, sorted by their effect.
type findings struct {
	passes  []report
	against []report // failed or undecided, and not healed by a pass
	stale   []string // why the other reports do not count
}

// proofs returns the passes that count for an engine, and its unhealed failures, performance reports included. A pass does not count
// if a failure keeps the engine from the machine that passed.
func (cs counted) proofs(r Release, e Engine) findings {
	f := cs.findings(PredicateParity, r, e)
	f.against = append(f.against, cs.findings(PredicatePerformance, r, e).against...)
	f.passes = slices.DeleteFunc(f.passes, func(pass report) bool { return f.keepsFrom(pass.Node) })
	return f
}

// keepsFrom reports whether a report keeps the engine from a node.
func (f findings) keepsFrom(n Node) bool {
	return slices.ContainsFunc(f.against, func(against report) bool { return against.keepsFrom(n) })
}

// findings reads the reports of one predicate type about an engine of the release.
func (cs counted) findings(predicateType string, r Release, e Engine) findings {
	var f findings
	for _, c := range distinct(cs.of(predicateType, e.Digest)) {
		read, _ := readReport(c)
		read.accelerated = e.Target.Accelerator != nil
		why := read.concernsOther(r, e)
		if why == "" && read.passes() {
			why = read.stale()
		}
		switch {
		case why != "":
			f.stale = append(f.stale, why)
		case read.passes():
			f.passes = append(f.passes, read)
		default:
			f.against = append(f.against, read)
		}
	}
	f.against = slices.DeleteFunc(f.against, func(against report) bool {
		return slices.ContainsFunc(f.passes, func(pass report) bool { return pass.heals(against) })
	})
	slices.SortStableFunc(f.against, report.compareAge)
	return f
}

// concernsOther returns why a report is not about this engine in this release, or "". It
// applies to passes and failures. An unreadable report could be about anything, so it counts as
// being about this engine.
func (r report) concernsOther(release Release, e Engine) string {
	switch {
	case r.fault != nil:
		return ""
	case !r.Limits.Names(release.Limits):
		return "it was checked against other limits than those of this release"
	case !r.Sources.Names(release.Sources) || !r.Reference.Names(e.Reference):
		return "it was made with other sources than those of this release"
	}
	if lacks := e.Target.Match(r.Node, r.Node.Runtime()); len(lacks) > 0 {
		return "it was made on hardware that is not the target: " + lacks[0].String()
	}
	return ""
}

// stale returns why a pass does not count, or "". Failures are never stale: a report that
// stopped early or contradicts itself still did not pass.
func (r report) stale() string {
	at := r.claim.RecordedAt
	switch {
	case r.Node.Runtimes[r.Runtime.Name] != r.Runtime.Version:
		return fmt.Sprintf("it used %s %s, which its node does not have", r.Runtime.Name, r.Runtime.Version)
	case r.Verdict == VerdictPass && len(r.Reasons) > 0:
		return "it says that it passed, but lists reasons for a failure"
	case r.claim.Statement.PredicateType == PredicateParity && (r.Cases.Count < 1 || r.Cases.Ran != r.Cases.Count):
		return fmt.Sprintf("it ran %d of %d cases", r.Cases.Ran, r.Cases.Count)
	case len(r.EarlyStop) > 0:
		return "it stopped early by a rule that this version does not know"
	case r.contradiction() != "":
		return "it says that it passed, but " + r.contradiction()
	case !at.IsZero() && ClaimsFuture(r.FinishedOn, at):
		return fmt.Sprintf("it says that it ended on %s, which is after it was recorded on %s", utc(r.FinishedOn), utc(at))
	}
	return ""
}

// contradiction names a limit or a consistency check that a report lists as failed or undecided,
// or is "". A verdict of pass beside it is wrong, whoever signed it.
func (r report) contradiction() string {
	for _, c := range r.Checks {
		if c.Verdict != VerdictPass {
			limit := strings.TrimSpace(c.Output + " " + c.Figure)
			return fmt.Sprintf("the verdict of its limit %s is %q", PlainText(limit), PlainText(string(c.Verdict)))
		}
	}
	for _, c := range r.Consistency {
		if c.Verdict == VerdictFail {
			return fmt.Sprintf("its consistency check %s failed", PlainText(string(c.Kind)))
		}
		if c.Kind == ConsistencyGolden && c.Verdict == VerdictUndecided {
			return "nothing compared its golden outputs with the reference model"
		}
	}
	return ""
}

// heals reports whether a pass outweighs a report that did not pass. It must come from a machine of the same
// kind, and its verifier must have been able to know of the failure. The history
// shows when that was. The times in the reports count only if the history names neither report.
func (r report) heals(against report) bool {
	failed, passed := against.claim, r.claim
	if against.fault == nil && !r.AlikeMachine(against.ReportHead, r.accelerated) {
		return false
	}
	switch {
	case failed.Recorded == 0 && passed.Recorded == 0:
		return against.fault == nil && r.FinishedOn.After(against.FinishedOn)
	case failed.Recorded == 0: // stored by an interrupted request, or pushed without the catalog
		return against.fault == nil && r.StartedOn.After(against.FinishedOn)
	case passed.Recorded == 0:
		return false
	case len(r.History) > 0:
		return failed.Recorded <= passed.Observed
	default: // an older report, without the field
		return failed.Recorded < passed.Recorded && failed.RecordedAt.Before(r.StartedOn)
	}
}

// newest returns the newest pass of each kind of hardware: of those that are preferred, if any are.
func (f findings) newest(preferred func(report) bool) map[string]report {
	newest := make(map[string]report)
	for _, pass := range f.passes {
		kind := pass.Node.Kind()
		have, ok := newest[kind]
		if better := preferred(pass); !ok || better && !preferred(have) || better == preferred(have) && pass.compareAge(have) < 0 {
			newest[kind] = pass
		}
	}
	return newest
}

// compareAge orders reports, newest first. Reports that the history does not name count as
// older than those that it names.
func (r report) compareAge(other report) int {
	return cmp.Or(cmp.Compare(other.claim.Recorded, r.claim.Recorded), other.FinishedOn.Compare(r.FinishedOn))
}

// noPass says why no pass counts.
func (f findings) noPass() string {
	if len(f.stale) > 0 {
		return "no report counts: " + f.stale[0]
	}
	return "no report of a trusted verifier: run mlpromote verify on a machine that meets the target"
}

// refuse marks the requirement as refused for every report that did not pass, unless a pass counts: then they only keep the engine
// from some nodes.
func (f findings) refuse(req *Requirement) {
	for _, against := range f.against {
		req.cite(against.claim)
		if len(f.passes) == 0 {
			req.refuse("%s", against.failure())
		}
	}
}

// Withheld are the nodes that do not get an engine, because a report of a machine like them did not pass.
type Withheld struct {
	Engine string `json:"engine"` // its label
	Nodes  string `json:"nodes"`  // which, for readers
	Why    string `json:"why"`    // what the report says
	Report Digest `json:"report"` // its bundle
}

// String says it in a line.
func (w Withheld) String() string {
	return PlainText(fmt.Sprintf("%s is kept from %s: %s", w.Engine, w.Nodes, w.Why))
}

// withheld lists the nodes that engines of a release are kept from, though a pass on another machine counts.
func (cs counted) withheld(r Release) []Withheld {
	var all []Withheld
	for _, e := range r.Engines {
		f := cs.proofs(r, e)
		for _, against := range f.against {
			if len(f.passes) > 0 {
				all = append(all, Withheld{e.Label(), against.kept(), against.failure(), against.claim.Bundle})
			}
		}
	}
	return all
}
