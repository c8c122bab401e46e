package policy

import (
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// ReportRule says how fresh the passing reports of an engine must be when it is promoted, of how
// many verifiers, on how many cases, and with how many repeated runs. The zero ReportRule asks for nothing. What was promoted stays when its reports age.
type ReportRule struct {
	// MaxAge is how long ago a report may have been made: by what [evidence.Claim.Time] shows, and by what it
	// says itself if that is earlier. 0: any time.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// Verifiers is how many different keys must have found that the engine passes; 0 is 1.
	Verifiers int `json:"verifiers,omitempty"`
	// Cases is in how many cases a report must show something of every output; 0 is 1. Copies, and cases that a mask leaves out, do
	// not count.
	Cases int `json:"cases,omitempty"`
	// Rare is how rare a difference between runs of the same request may be that the repeated runs of a report would miss at most
	// half of the time: one in so many requests; 0 asks for none.
	Rare int `json:"rare,omitempty"`
}

// IsZero reports whether the rule asks for nothing.
func (rule ReportRule) IsZero() bool { return rule == ReportRule{} }

// Validate checks the form of a rule. Errors: CodeInvalid.
func (rule ReportRule) Validate() error {
	switch {
	case rule.MaxAge < 0 || rule.MaxAge > 0 && rule.MaxAge < time.Minute:
		return registry.Errorf(registry.CodeInvalid, "reports: max-age %v: want at least a minute", rule.MaxAge)
	case rule.Verifiers < 0 || rule.Verifiers > 100:
		return registry.Errorf(registry.CodeInvalid, "reports: verifiers %d: want 1 to 100", rule.Verifiers)
	case rule.Cases < 0:
		return registry.Errorf(registry.CodeInvalid, "reports: cases %d: want at least 1", rule.Cases)
	case rule.Rare < 0 || rule.Rare == 1 || rule.Rare > evidence.MostRare:
		return registry.Errorf(registry.CodeInvalid, "reports: rare %d: want 2 to %d", rule.Rare, evidence.MostRare)
	}
	return nil
}

// judgeReports decides whether enough verifiers made a passing parity report of the engine, each
// recently enough. A report counts only if it meets what the policy asks of reports otherwise, and a
// failure that was not healed denies unless a pass on another machine counts, as everywhere.
func judgeReports(j judging, req *Requirement, e artifact.Engine) {
	p, want := j.policy, max(1, j.policy.Reports.Verifiers)
	parity := j.counted.Proofs(j.release, e)
	if want == 1 && len(parity.Passes) == 0 && p.parityRefuses() { // in the words of [RequireParity], so that a refusal says it once
		req.Met = true
		refuseFindings(parity, req)
		req.deny("%s", parity.NoPass())
		return
	}
	rules := []passRule{passFresh, passCases, passRare}
	if slices.Contains(p.Require, RequireRecordedCases) {
		rules = append(rules, passRecorded)
	}
	rules = append(rules, passCompared)
	fresh, few, missed, broken := make(map[string]evidence.Report), 0, 0, make(map[passRule]int) // the newest by key, and passes by the rule that they break
	for _, pass := range parity.Passes {
		rule, _ := p.brokenRule(pass, e, rules...)
		switch have, ok := fresh[pass.Claim.Signer]; {
		case rule != 0:
			switch broken[rule]++; rule {
			case passCases:
				few = max(few, evidence.CasesOf(pass))
			case passRare:
				missed = max(missed, pass.Checks.MissedOneIn())
			}
		case !ok || pass.Age().After(have.Age()):
			fresh[pass.Claim.Signer] = pass
		}
	}
	for _, signer := range registry.SortedKeys(fresh) {
		req.cite(fresh[signer].Claim)
	}
	req.Met, req.Detail, req.until = true, p.freshReports(len(fresh)), p.agesAt(fresh, want)
	if len(fresh) < want {
		text := fmt.Sprintf("%s, and %d must have found that it passes", req.Detail, want)
		if old := broken[passFresh]; old > 0 {
			text += fmt.Sprintf("; %s of earlier do not count", registry.Count(old, "report"))
		}
		switch {
		case broken[passRecorded] > 0:
			req.deny("%s; reports on cases that were not recorded do not count: build with recorded cases, and verify", text)
		case broken[passCases] > 0:
			req.deny("%s; one shows %s of the %d that are wanted: build with more cases, and verify", text, registry.Count(few, "case"), p.Reports.Cases)
		case broken[passRare] > 0:
			req.deny("%s; %s", text, p.Reports.lacksRuns(missed))
		default:
			req.deny("%s: run mlpromote verify with the key of another verifier, or again", text)
		}
	}
	refuseFindings(parity, req)
}

// lacksRuns says what a report with too few repeated runs lacks, and what to do.
func (rule ReportRule) lacksRuns(missed int) string {
	ran := "a report has no repeated runs"
	if missed > 0 {
		ran = fmt.Sprintf("the repeated runs of a report would miss a difference in 1 of %d requests half of the time", missed)
	}
	return fmt.Sprintf("%s, and 1 of %d is wanted: set limits.consistency.rare to %d in mlpromote.yaml, build and verify", ran, rule.Rare, rule.Rare)
}

func (p Policy) freshReports(verifiers int) string {
	text := "passing reports of " + registry.Count(verifiers, "verifier")
	if p.Reports.Cases > 0 {
		text += fmt.Sprintf(" with %d cases or more", p.Reports.Cases)
	}
	if p.Reports.Rare > 0 {
		text += fmt.Sprintf(" that would miss a difference in 1 of %d requests at most half of the time", p.Reports.Rare)
	}
	if p.Reports.MaxAge > 0 {
		text += fmt.Sprintf(" from the last %v", p.Reports.MaxAge)
	}
	return text
}
