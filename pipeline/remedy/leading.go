package remedy

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// Leading returns the reason that people see first of an engine that is no pass, and the number of all reasons in the heads of its
// reports: that outputs cannot be compared, which spoils all figures; else the one about labels, which are the task of the model; else the
// first.
func Leading(heads ...evidence.ReportHead) (leading evidence.Reason, count int) {
	for _, head := range heads {
		if head.Verdict == evidence.VerdictPass || head.Verdict == evidence.VerdictRecorded {
			continue
		}
		for _, r := range head.Reasons {
			if count == 0 || rank(r) < rank(leading) {
				leading = r
			}
			count++
		}
	}
	return leading, count
}

// rank is the place of a reason among those that lead.
func rank(r evidence.Reason) int {
	switch {
	case slices.Contains([]string{validators.ReasonShape, validators.ReasonNewNaN, validators.ReasonNewInf}, r.Code):
		return 0
	case validators.LineOf(r) == figure.Labels:
		return 1
	}
	return 2
}

// Usual adds the usual cause of the leading reason to the failure of an engine that has no better one. converted reports whether the
// reference model itself computes something else for inputs as the engines take them.
func Usual(failure error, label, precision string, converted bool, heads ...evidence.ReportHead) error {
	reason, count := Leading(heads...)
	if failure == nil || count == 0 || len(All(failure)) > 0 {
		return failure
	}
	of := Of
	if converted {
		of = OfConversion
	}
	if heads[0].Runtime.Served != nil {
		of = OfServed
	}
	likely, next := of(reason, precision)
	return With(failure, label, likely, next)
}
