package registry

import (
	"encoding/json"
	"fmt"
)

// report has the fields of a parity or performance report that policy reads.
type report struct {
	ReportHead
	Cases       CasesRun                 `json:"cases"`
	Checks      []Check                  `json:"checks"`
	Consistency []ConsistencyCheck       `json:"consistency"`
	EarlyStop   json.RawMessage          `json:"earlyStop"`
	Destination *Destination             `json:"destination"`
	Rules       int                      `json:"rules"`
	Confidence  Figure                   `json:"confidence"`
	Attempts    int                      `json:"attempts"`
	Accuracy    *Accuracy                `json:"accuracy"`
	Outputs     map[string]OutputFigures `json:"outputs"`
	PlainLoad   *PlainLoad               `json:"plainLoad"`
	claim       Claim
	fault       error // why it cannot be read; then only claim is set
	accelerated bool  // its engine is for an accelerator
}

// readReport reads a claim that is a parity or performance report. ok is false for other types.
func readReport(c Claim) (read report, ok bool) {
	if c.Statement.PredicateType != PredicateParity && c.Statement.PredicateType != PredicatePerformance {
		return report{}, false
	}
	if err := DecodeSigned(c.Statement.Predicate, &read); err != nil {
		return report{claim: c, fault: err}, true
	}
	read.claim = c
	return read, true
}

// passes reports whether the report supports its engine. A performance report that only
// recorded figures passes, because it had no limit.
func (r report) passes() bool {
	recorded := r.Verdict == VerdictRecorded && r.claim.Statement.PredicateType == PredicatePerformance
	return r.fault == nil && (r.Verdict == VerdictPass || recorded)
}

// failure says what a report that did not pass says.
func (r report) failure() string {
	what := "parity"
	if r.claim.Statement.PredicateType == PredicatePerformance {
		what = "performance"
	}
	switch {
	case r.fault != nil:
		return fmt.Sprintf("a %s report of a trusted verifier cannot be read: %s: verify again", what, r.fault)
	case len(r.Reasons) == 0:
		return fmt.Sprintf("the %s verdict is %q", what, r.Verdict)
	default:
		return fmt.Sprintf("the %s verdict is %q: %s", what, r.Verdict, PlainText(r.Reasons[0].Message))
	}
}

// casesOf is in how many cases a report shows something of every output: a mask, or a reference that is NaN, can leave
// fewer than ran. Each output has the check that is of the most.
func casesOf(pass report) int {
	most := make(map[string]int)
	for _, c := range pass.Checks {
		if c.Output != "" {
			most[c.Output] = max(most[c.Output], c.Cases)
		}
	}
	shown := pass.Cases.Ran
	for _, cases := range most {
		shown = min(shown, cases)
	}
	return shown
}
