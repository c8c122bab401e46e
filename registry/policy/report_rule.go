package policy

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// ReportRule says how fresh the passing reports of an engine must be when it is promoted, of how
// many verifiers, and on how many cases. The zero ReportRule asks for nothing. What was promoted stays when its reports age.
type ReportRule struct {
	// MaxAge is how long ago a report may have been made: by what [evidence.Claim.Time] shows, and by what it
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
		return registry.Errorf(registry.CodeInvalid, "reports: max-age %v: want at least a minute", rule.MaxAge)
	case rule.Verifiers < 0 || rule.Verifiers > 100:
		return registry.Errorf(registry.CodeInvalid, "reports: verifiers %d: want 1 to 100", rule.Verifiers)
	case rule.Cases < 0:
		return registry.Errorf(registry.CodeInvalid, "reports: cases %d: want at least 1", rule.Cases)
	}
	return nil
}
