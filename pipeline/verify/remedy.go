package verify

import (
	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// Leading returns the reason that people see first of an engine that is no pass, and the number of all reasons: the one about labels,
// which are the task of the model, or else the first.
func (e VerifiedEngine) Leading() (leading evidence.Reason, count int) {
	for _, head := range []evidence.ReportHead{e.Parity.ReportHead, e.Performance.ReportHead} {
		if head.Verdict == evidence.VerdictPass || head.Verdict == evidence.VerdictRecorded {
			continue
		}
		for _, r := range head.Reasons {
			if count == 0 || validators.LineOf(r) == figure.Labels && validators.LineOf(leading) != figure.Labels {
				leading = r
			}
			count++
		}
	}
	return leading, count
}

// remedies adds the usual cause to the failures of engines that have no better one. converted reports whether the reference model itself
// computes something else for inputs as the engines take them.
func remedies(v Session, engines []VerifiedEngine, failures []error, converted bool) {
	for i, e := range engines {
		reason, count := e.Leading()
		if failures[i] == nil || count == 0 || len(remedy.All(failures[i])) > 0 {
			continue
		}
		of := remedy.Of
		if converted {
			of = remedy.OfConversion
		}
		likely, next := of(reason, v.candidates[i].Engine.Precision)
		failures[i] = remedy.With(failures[i], e.Label, likely, next)
	}
}
