package validators

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// Finding is one thing that was found about an engine: VerdictFail for what is wrong, VerdictUndecided for
// what could not be decided, and without a reason VerdictRecorded where nothing was to be decided.
type Finding struct {
	Verdict evidence.Verdict
	Reason  evidence.Reason
}

// Findings are what was found about an engine by all its checks, in the order of its report. Without
// any it passes.
type Findings []Finding

// Failed returns findings of what is wrong.
func Failed(reasons ...evidence.Reason) Findings { return findings(evidence.VerdictFail, reasons) }

// Undecided returns findings of what could not be decided.
func Undecided(reasons ...evidence.Reason) Findings {
	return findings(evidence.VerdictUndecided, reasons)
}

func findings(verdict evidence.Verdict, reasons []evidence.Reason) (all Findings) {
	for _, r := range reasons {
		all = append(all, Finding{verdict, r})
	}
	return all
}

// Fold sets the verdict of a report and its reasons: nothing else does. What is wrong fails, whatever
// else could not be decided. A finding with a verdict that is unknown, or with none, is undecided.
func (f Findings) Fold(head *evidence.ReportHead) {
	head.Verdict, head.Reasons = evidence.VerdictPass, nil
	for _, found := range f {
		if found.Verdict != evidence.VerdictRecorded {
			head.Reasons = append(head.Reasons, found.Reason)
		}
		verdict := found.Verdict
		if !slices.Contains(order, verdict) {
			verdict = evidence.VerdictUndecided
		}
		if slices.Index(order, verdict) > slices.Index(order, head.Verdict) {
			head.Verdict = verdict
		}
	}
}

// order is the verdicts, from the weakest: a stronger one decides.
var order = []evidence.Verdict{evidence.VerdictPass, evidence.VerdictRecorded, evidence.VerdictUndecided, evidence.VerdictFail}

// Verdict returns the verdict and the reasons that Fold sets.
func (f Findings) Verdict() (evidence.Verdict, []evidence.Reason) {
	var head evidence.ReportHead
	f.Fold(&head)
	return head.Verdict, head.Reasons
}
