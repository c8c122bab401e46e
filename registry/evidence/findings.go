package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Findings are the reports about an engine, sorted by their effect.
type Findings struct {
	Passes  []Report
	Against []Report // failed or undecided, and not healed by a pass
	// Served are passes through a model server in place of the runtime that the engine is for, and ServedAgainst its failures that no later
	// pass through it heals. They count for a rule that asks for that server: they show nothing about the runtime, or about another server.
	Served, ServedAgainst []Report
	Stale                 []string // why the other reports do not count
}

// Proofs returns the passes that count for an engine, and its unhealed failures, performance reports included. A pass does not count
// if a failure keeps the engine from the machine that passed.
func (cs Counted) Proofs(r artifact.Release, e artifact.Engine) Findings {
	f := cs.Findings(PredicateParity, r, e)
	performance := cs.Findings(PredicatePerformance, r, e)
	f.Against, f.ServedAgainst = append(f.Against, performance.Against...), append(f.ServedAgainst, performance.ServedAgainst...)
	kept := func(pass Report) bool { return f.KeepsFrom(pass.Node) }
	f.Passes, f.Served = slices.DeleteFunc(f.Passes, kept), slices.DeleteFunc(f.Served, kept)
	return f
}

// KeepsFrom reports whether a report keeps the engine from a node.
func (f Findings) KeepsFrom(n artifact.Node) bool {
	return slices.ContainsFunc(f.Against, func(against Report) bool { return against.keepsFrom(n) })
}

// Findings reads the reports of one predicate type about an engine of the release.
func (cs Counted) Findings(predicateType string, r artifact.Release, e artifact.Engine) Findings {
	var f Findings
	for _, c := range Distinct(cs.Of(predicateType, e.Digest)) {
		read, _ := ReadReport(c)
		read.accelerated = e.Target.Accelerator != nil
		why := read.concernsOther(r, e)
		if why == "" && read.Passes() {
			why = read.stale(e)
		}
		switch {
		case why != "":
			f.Stale = append(f.Stale, why)
		case read.Passes() && read.Runtime.InPlaceOf(e) != "":
			f.Served = append(f.Served, read)
		case read.Passes():
			f.Passes = append(f.Passes, read)
		case read.Fault == nil && read.Runtime.InPlaceOf(e) != "":
			f.ServedAgainst = append(f.ServedAgainst, read)
		default:
			f.Against = append(f.Against, read)
		}
	}
	f.Against = unhealed(f.Against, f.Passes)
	f.ServedAgainst = unhealed(f.ServedAgainst, f.Served)
	slices.SortStableFunc(f.Against, Report.CompareAge)
	return f
}

// unhealed returns the failures that none of the passes outweighs.
func unhealed(failures, passes []Report) []Report {
	return slices.DeleteFunc(failures, func(against Report) bool {
		return slices.ContainsFunc(passes, func(pass Report) bool { return pass.heals(against) })
	})
}

// concernsOther returns why a report is not about this engine in this release, or "". It
// applies to passes and failures. An unreadable report could be about anything, so it counts as
// being about this engine.
func (r Report) concernsOther(release artifact.Release, e artifact.Engine) string {
	switch {
	case r.Fault != nil:
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
func (r Report) stale(e artifact.Engine) string {
	at := r.Claim.RecordedAt
	parity := r.Claim.Statement.PredicateType == PredicateParity
	switch {
	case parity && r.Rules != ReportRules:
		return r.otherRules()
	case r.Runtime.Served != nil && !r.Runtime.Served.BytesSeen:
		return "a server answered, and nothing shows from which bytes"
	case r.Runtime.InPlaceOf(e) == "" && r.Node.Runtimes[r.Runtime.Name] != r.Runtime.Version:
		return fmt.Sprintf("it used %s %s, which its node does not have", r.Runtime.Name, r.Runtime.Version)
	case r.Verdict == VerdictPass && len(r.Reasons) > 0:
		return "it says that it passed, but lists reasons for a failure"
	case parity && (r.Cases.Count < 1 || r.Cases.Ran != r.Cases.Count):
		return fmt.Sprintf("it ran %d of %d cases", r.Cases.Ran, r.Cases.Count)
	case len(r.EarlyStop) > 0:
		return "it stopped early by a rule that this version does not know"
	case r.contradiction() != "":
		return "it says that it passed, but " + r.contradiction()
	case !at.IsZero() && registry.ClaimsFuture(r.FinishedOn, at):
		return fmt.Sprintf("it says that it ended on %s, which is after it was recorded on %s", registry.UTC(r.FinishedOn), registry.UTC(at))
	}
	return ""
}

// mayNotRun are the trials that a pass may lack, for want of time or memory. Limits can require them.
var mayNotRun = []Trial{TrialRepeat, TrialProcess, TrialLoad, TrialBatch, TrialDimension, TrialBeyond, TrialPlainLoad}

// contradiction names a check that a report lists as failed or undecided, or is "". A verdict of pass
// beside it is wrong, whoever signed it.
func (r Report) contradiction() string {
	for _, c := range r.Checks.OfCases() {
		if c.Verdict != VerdictPass {
			limit := strings.TrimSpace(c.Output + " " + c.Figure)
			return fmt.Sprintf("the verdict of its limit %s is %q", registry.PlainText(limit), registry.PlainText(string(c.Verdict)))
		}
	}
	for _, c := range r.Checks.Beyond() {
		switch name := registry.PlainText(cmp.Or(c.Name(), c.Figure)); {
		case c.Verdict == VerdictPass || c.Verdict == VerdictRecorded:
		case c.Trial == TrialGolden && c.Verdict == VerdictUndecided:
			return "nothing compared its golden outputs with the reference model"
		case c.Verdict == VerdictUndecided && slices.Contains(mayNotRun, c.Trial):
		default:
			return fmt.Sprintf("the verdict of its check %s is %q", name, registry.PlainText(string(c.Verdict)))
		}
	}
	return ""
}

// heals reports whether a pass outweighs a report that did not pass. It must come from a machine of the same
// kind, and its verifier must have been able to know of the failure. The history
// shows when that was. The times in the reports count only if the history names neither report.
func (r Report) heals(against Report) bool {
	failed, passed := against.Claim, r.Claim
	if against.Fault == nil && !r.AlikeMachine(against.ReportHead, r.accelerated) {
		return false
	}
	switch {
	case failed.Recorded == 0 && passed.Recorded == 0:
		return against.Fault == nil && r.FinishedOn.After(against.FinishedOn)
	case failed.Recorded == 0: // stored by an interrupted request, or pushed without the catalog
		return against.Fault == nil && r.StartedOn.After(against.FinishedOn)
	case passed.Recorded == 0:
		return false
	case len(r.History) > 0:
		return failed.Recorded <= passed.Observed
	default: // an older report, without the field
		return failed.Recorded < passed.Recorded && failed.RecordedAt.Before(r.StartedOn)
	}
}

// Newest returns the newest pass of each kind of hardware: of those that are preferred, if any are.
func (f Findings) Newest(preferred func(Report) bool) map[string]Report {
	newest := make(map[string]Report)
	for _, pass := range f.Passes {
		kind := pass.Node.Kind()
		have, ok := newest[kind]
		if better := preferred(pass); !ok || better && !preferred(have) || better == preferred(have) && pass.CompareAge(have) < 0 {
			newest[kind] = pass
		}
	}
	return newest
}

// CompareAge orders reports, newest first. Reports that the history does not name count as
// older than those that it names.
func (r Report) CompareAge(other Report) int {
	return cmp.Or(cmp.Compare(other.Claim.Recorded, r.Claim.Recorded), other.FinishedOn.Compare(r.FinishedOn))
}

// NoPass says why no pass counts.
func (f Findings) NoPass() string {
	if len(f.Stale) > 0 {
		return "no report counts: " + f.Stale[0]
	}
	return "no report of a trusted verifier: run mlpromote verify on a machine that meets the target"
}

// Withheld are the nodes that do not get an engine, because a report of a machine like them did not pass.
type Withheld struct {
	Engine string          `json:"engine"` // its label
	Nodes  string          `json:"nodes"`  // which, for readers
	Why    string          `json:"why"`    // what the report says
	Report registry.Digest `json:"report"` // its bundle
}

// String says it in a line.
func (w Withheld) String() string {
	return registry.PlainText(fmt.Sprintf("%s is kept from %s: %s", w.Engine, w.Nodes, w.Why))
}

// Withheld lists the nodes that engines of a release are kept from, though a pass on another machine counts.
func (cs Counted) Withheld(r artifact.Release) []Withheld {
	var all []Withheld
	for _, e := range r.Engines {
		f := cs.Proofs(r, e)
		for _, against := range f.Against {
			if len(f.Passes) > 0 {
				all = append(all, Withheld{e.Label(), against.Kept(), against.Failure(), against.Claim.Bundle})
			}
		}
	}
	return all
}
