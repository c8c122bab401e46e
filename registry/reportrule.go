package registry

import (
	"fmt"
	"slices"
	"time"
)

// requireReports applies in every environment with a [ReportRule].
const requireReports = "reports"

// ReportRule says how fresh the passing reports of an engine must be when it is promoted, and of how
// many verifiers. The zero ReportRule asks for nothing. What was promoted stays when its reports age.
type ReportRule struct {
	// MaxAge is how long ago a report may have been made, by what [Claim.Time] returns. 0: any time.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// Verifiers is how many different keys must have found that the engine passes; 0 is 1.
	Verifiers int `json:"verifiers,omitempty"`
}

// IsZero reports whether the rule asks for nothing.
func (rule ReportRule) IsZero() bool { return rule == ReportRule{} }

// Validate checks the form of a rule. Errors: CodeInvalid.
func (rule ReportRule) Validate() error {
	switch {
	case rule.MaxAge < 0 || rule.MaxAge > 0 && rule.MaxAge < time.Minute:
		return Errorf(CodeInvalid, "reports: max-age %v: want at least a minute", rule.MaxAge)
	case rule.Verifiers < 0 || rule.Verifiers > 100:
		return Errorf(CodeInvalid, "reports: verifiers %d: want 1 to 100", rule.Verifiers)
	}
	return nil
}

// judgeReports decides whether enough verifiers made a passing parity report of the engine, each
// recently enough.
func (p Policy) judgeReports(req *Requirement, r Release, e Engine, cs counted) {
	want := max(1, p.Reports.Verifiers)
	fresh, old := make(map[string]report), 0 // by key, the newest
	for _, pass := range cs.findings(PredicateParity, r, e).passes {
		if p.aged(pass.claim) {
			old++
			continue
		}
		have, ok := fresh[pass.claim.Signer]
		if at, _ := pass.claim.Time(); ok {
			if before, _ := have.claim.Time(); !at.After(before) {
				continue
			}
		}
		fresh[pass.claim.Signer] = pass
	}
	var ends []time.Time
	for _, signer := range sortedKeys(fresh) {
		at, _ := fresh[signer].claim.Time()
		ends = append(ends, at.Add(p.Reports.MaxAge))
		req.cite(fresh[signer].claim)
	}
	req.Met = len(fresh) >= want
	req.Detail = fmt.Sprintf("passing reports of %s", Count(len(fresh), "verifier"))
	if p.Reports.MaxAge > 0 {
		req.Detail += fmt.Sprintf(" from the last %v", p.Reports.MaxAge)
	}
	switch {
	case !req.Met:
		req.Detail += fmt.Sprintf(", and %d must have found that it passes", want)
		if old > 0 {
			req.Detail += fmt.Sprintf("; %s of earlier do not count", Count(old, "report"))
		}
		req.Detail += ": run mlpromote verify with the key of another verifier, or again"
	case p.Reports.MaxAge > 0:
		slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
		req.until = ends[want-1]
	}
}

// aged reports whether a report is too old for the promotion, or nothing shows when it was made.
func (p Policy) aged(c Claim) bool {
	if p.Reports.MaxAge == 0 {
		return false
	}
	at, _ := c.Time()
	return at.IsZero() || p.Promotion.Now.IsZero() || !p.Promotion.Now.Before(at.Add(p.Reports.MaxAge))
}
