package registry

import (
	"fmt"
	"slices"
	"time"
)

// requireReports applies in every environment with a [ReportRule].
const requireReports = "reports"

// ReportRule says how fresh the passing reports of an engine must be when it is promoted, of how
// many verifiers, and on how many cases. The zero ReportRule asks for nothing. What was promoted stays when its reports age.
type ReportRule struct {
	// MaxAge is how long ago a report may have been made: by what [Claim.Time] shows, and by what it
	// says itself if that is earlier. 0: any time.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// Verifiers is how many different keys must have found that the engine passes; 0 is 1.
	Verifiers int `json:"verifiers,omitempty"`
	// Cases is in how many cases a report must show something of every output; 0 is 1. Copies, and cases that a mask leaves out, do
	// not count.
	Cases int `json:"cases,omitempty"`
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
	case rule.Cases < 0:
		return Errorf(CodeInvalid, "reports: cases %d: want at least 1", rule.Cases)
	}
	return nil
}

// judgeReports decides whether enough verifiers made a passing parity report of the engine, each
// recently enough. A report counts only if it meets what the policy asks of reports otherwise, and a
// failure that was not healed denies unless a pass on another machine counts, as everywhere.
func (p Policy) judgeReports(req *Requirement, r Release, e Engine, cs counted) {
	want := max(1, p.Reports.Verifiers)
	parity := cs.proofs(r, e)
	if want == 1 && len(parity.passes) == 0 && p.paritySaysSo() { // in the words of [RequireParity], so that a refusal says it once
		req.Met = true
		parity.refuse(req)
		req.deny("%s", noPass(parity.stale))
		return
	}
	fresh, old, few, generated := make(map[string]report), 0, -1, false // by key, the newest
	for _, pass := range parity.passes {
		switch have, ok := fresh[pass.claim.Signer]; {
		case p.aged(pass):
			old++
		case casesOf(pass) < p.Reports.Cases:
			few = max(few, casesOf(pass))
		case slices.Contains(p.Require, RequireRecordedCases) && pass.Cases.Origin != OriginRecorded:
			generated = true
		case !p.compared(pass):
		case !ok || pass.age().After(have.age()):
			fresh[pass.claim.Signer] = pass
		}
	}
	for _, signer := range sortedKeys(fresh) {
		req.cite(fresh[signer].claim)
	}
	req.Met, req.Detail = true, p.freshReports(len(fresh))
	switch {
	case len(fresh) < want:
		text := fmt.Sprintf("%s, and %d must have found that it passes", req.Detail, want)
		if old > 0 {
			text += fmt.Sprintf("; %s of earlier do not count", Count(old, "report"))
		}
		if generated {
			req.deny("%s; reports on cases that were not recorded do not count: build with recorded cases, and verify", text)
			break
		}
		if few >= 0 {
			req.deny("%s; one shows %s of the %d that are wanted: build with more cases, and verify", text, Count(few, "case"), p.Reports.Cases)
			break
		}
		req.deny("%s: run mlpromote verify with the key of another verifier, or again", text)
	default:
		req.until = p.agesAt(fresh, want)
	}
	parity.refuse(req)
}

// agesAt returns when fewer than want of the reports are young enough; zero: never.
func (p Policy) agesAt(fresh map[string]report, want int) time.Time {
	if p.Reports.MaxAge == 0 || len(fresh) < want {
		return time.Time{}
	}
	var ends []time.Time
	for _, r := range fresh {
		ends = append(ends, r.age().Add(p.Reports.MaxAge))
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[want-1]
}

func (p Policy) freshReports(verifiers int) string {
	text := "passing reports of " + Count(verifiers, "verifier")
	if p.Reports.Cases > 0 {
		text += fmt.Sprintf(" with %d cases or more", p.Reports.Cases)
	}
	if p.Reports.MaxAge > 0 {
		text += fmt.Sprintf(" from the last %v", p.Reports.MaxAge)
	}
	return text
}

// age returns since when a report can have been known: the earlier of the time at which it says that
// its verifier was done, and of what [Claim.Time] shows. What was recorded today can be years old. It
// is zero if either is unknown.
func (r report) age() time.Time {
	at, _ := r.claim.Time()
	if at.IsZero() || r.FinishedOn.Before(at) {
		return r.FinishedOn
	}
	return at
}

// aged reports whether a report is too old for the promotion, or nothing shows when it was made.
func (p Policy) aged(pass report) bool {
	if p.Reports.MaxAge == 0 {
		return false
	}
	shown, _ := pass.claim.Time()
	at := pass.age()
	return shown.IsZero() || at.IsZero() || p.Promotion.Now.IsZero() || !p.Promotion.Now.Before(at.Add(p.Reports.MaxAge))
}
