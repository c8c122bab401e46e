package validators

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Finding is one thing that was found about an engine: VerdictFail for what is wrong, VerdictUndecided for
// what could not be decided, and without a reason VerdictRecorded where nothing was to be decided.
type Finding struct {
	Verdict registry.Verdict
	Reason  registry.Reason
}

// Findings are what was found about an engine by all its checks, in the order of its report. Without
// any it passes.
type Findings []Finding

// Failed returns findings of what is wrong.
func Failed(reasons ...registry.Reason) Findings { return findings(registry.VerdictFail, reasons) }

// Undecided returns findings of what could not be decided.
func Undecided(reasons ...registry.Reason) Findings {
	return findings(registry.VerdictUndecided, reasons)
}

func findings(verdict registry.Verdict, reasons []registry.Reason) (all Findings) {
	for _, r := range reasons {
		all = append(all, Finding{verdict, r})
	}
	return all
}

// Fold sets the verdict of a report and its reasons: nothing else does. What is wrong fails, whatever
// else could not be decided.
func (f Findings) Fold(head *registry.ReportHead) {
	head.Verdict, head.Reasons = registry.VerdictPass, nil
	for _, found := range f {
		if found.Verdict != registry.VerdictRecorded {
			head.Reasons = append(head.Reasons, found.Reason)
		}
		if slices.Index(order, found.Verdict) > slices.Index(order, head.Verdict) {
			head.Verdict = found.Verdict
		}
	}
}

// order is the verdicts, from the weakest: a stronger one decides.
var order = []registry.Verdict{registry.VerdictPass, registry.VerdictRecorded, registry.VerdictUndecided, registry.VerdictFail}

// Verdict returns the verdict and the reasons that Fold sets.
func (f Findings) Verdict() (registry.Verdict, []registry.Reason) {
	var head registry.ReportHead
	f.Fold(&head)
	return head.Verdict, head.Reasons
}

// openFirst makes a failure undecided where anything else is: so version 1 of the limits judged.
func (f Findings) openFirst() Findings {
	open := slices.ContainsFunc(f, func(found Finding) bool { return found.Verdict == registry.VerdictUndecided })
	if !open {
		return f
	}
	_, reasons := f.Verdict()
	return Undecided(reasons...)
}
