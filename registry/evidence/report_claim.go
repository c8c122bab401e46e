package evidence

import (
	"encoding/json"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// Report has the fields of a parity or performance report that policy reads.
type Report struct {
	ReportHead
	Cases       CasesRun                 `json:"cases"`
	Checks      Checks                   `json:"checks"`
	EarlyStop   json.RawMessage          `json:"earlyStop"`
	Destination *Destination             `json:"destination"`
	Rules       int                      `json:"rules"`
	Confidence  Figure                   `json:"confidence"`
	Attempts    int                      `json:"attempts"`
	Accuracy    *Accuracy                `json:"accuracy"`
	Outputs     map[string]OutputFigures `json:"outputs"`
	Claim       Claim                    `json:"-"` // no part of what the signer says
	Fault       error                    `json:"-"` // why it cannot be read; then only Claim is set
	accelerated bool                     // its engine is for an accelerator
}

// ReadReport reads a claim that is a parity or performance report. ok is false for other types.
func ReadReport(c Claim) (read Report, ok bool) {
	if c.Statement.PredicateType != PredicateParity && c.Statement.PredicateType != PredicatePerformance {
		return Report{}, false
	}
	if err := registry.DecodeSigned(c.Statement.Predicate, &read); err != nil {
		return Report{Claim: c, Fault: err}, true
	}
	read.Claim = c
	return read, true
}

// Passes reports whether the report supports its engine. A performance report that only
// recorded figures passes, because it had no limit.
func (r Report) Passes() bool {
	recorded := r.Verdict == VerdictRecorded && r.Claim.Statement.PredicateType == PredicatePerformance
	return r.Fault == nil && (r.Verdict == VerdictPass || recorded)
}

// Failure says what a report that did not pass says.
func (r Report) Failure() string {
	what := "parity"
	if r.Claim.Statement.PredicateType == PredicatePerformance {
		what = "performance"
	}
	if r.Runtime.Served != nil {
		what = registry.PlainText(r.Runtime.Served.By+" "+r.Runtime.Served.Version) + " " + what
	}
	switch {
	case r.Fault != nil:
		return fmt.Sprintf("a %s report of a trusted verifier cannot be read: %s: verify again", what, r.Fault)
	case len(r.Reasons) == 0:
		return fmt.Sprintf("the %s verdict is %q", what, r.Verdict)
	default:
		return fmt.Sprintf("the %s verdict is %q: %s", what, r.Verdict, registry.PlainText(r.Reasons[0].Message))
	}
}

// CasesOf is in how many cases a report shows something of every output: a mask, or a reference that is NaN, can leave
// fewer than ran. Each output has the check that is of the most.
func CasesOf(pass Report) int {
	most := make(map[string]int)
	for _, c := range pass.Checks.OfCases() {
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
