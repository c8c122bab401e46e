package validators

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// The limits on jitter: JitterNone allows no difference at all between two runs of the same cases, and
// JitterLimits what the limits of outputs allow between engine and reference.
const (
	JitterNone   = "none"
	JitterLimits = "limits"
)

// ConsistencyLimits are what consistency checks must find beside keeping the limits of outputs. The
// zero ConsistencyLimits asks for nothing more.
type ConsistencyLimits struct {
	// Jitter is JitterNone or JitterLimits. Where it is empty runs may differ by a part of what the
	// engine is off from the reference: see [Limits.JudgeAgain].
	Jitter string `json:"jitter,omitempty"`
	// Required is true if a check that did not run leaves the engine undecided.
	Required bool `json:"required,omitempty"`
}

func (c *ConsistencyLimits) validate() error {
	switch {
	case c == nil:
		return nil
	case c.Jitter != "" && c.Jitter != JitterNone && c.Jitter != JitterLimits:
		return registry.Errorf(registry.CodeInvalid, "limits: jitter %q: want %s or %s", c.Jitter, JitterNone, JitterLimits)
	case *c == ConsistencyLimits{}:
		return registry.Errorf(registry.CodeInvalid, "limits: consistency asks for nothing")
	}
	return nil
}

// ExactRepeats reports whether two runs of the same cases must not differ at all.
func (l Limits) ExactRepeats() bool {
	return l.Consistency != nil && l.Consistency.Jitter == JitterNone
}

// JudgeNotRun gives a reason for each check that the limits want and that nothing is known of: those
// are undecided.
func (l Limits) JudgeNotRun(checks evidence.Checks) []evidence.Reason {
	if l.Consistency == nil || !l.Consistency.Required && !l.ExactRepeats() {
		return nil
	}
	var reasons []evidence.Reason
	for _, c := range checks {
		if c.Verdict == evidence.VerdictUndecided && (l.Consistency.Required || TrialOf(c.Trial).SameCases) {
			reasons = append(reasons, notRun(c.Trial, c.Size, c.Message))
		}
	}
	for _, t := range trials {
		if t.Wanted && !slices.ContainsFunc(checks, func(c evidence.Check) bool { return c.Trial == t.Trial }) {
			reasons = append(reasons, notRun(t.Trial, "", ""))
		}
	}
	return reasons
}

func notRun(kind evidence.Trial, what, why string) evidence.Reason {
	message := "the limits want the consistency check " + string(kind)
	if what != "" {
		message += " " + what
	}
	message += ", which did not run"
	if why != "" {
		message += ": " + why
	}
	return evidence.Reason{Code: ReasonNotRun, Trial: kind, Message: message}
}
