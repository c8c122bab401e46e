package validators

import (
	"fmt"
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
	// Rare asks for so many repeated runs that a difference in one of Rare requests is missed at most half of the time; 0 asks for none.
	Rare int `json:"rare,omitempty"`
}

// RepeatedRuns is how many repeated runs the limits ask for; 0 leaves it to who verifies.
func (l Limits) RepeatedRuns() int {
	if l.Consistency == nil {
		return 0
	}
	return evidence.RunsFor(l.Consistency.Rare)
}

func (c *ConsistencyLimits) validate() error {
	switch {
	case c == nil:
		return nil
	case c.Jitter != "" && c.Jitter != JitterNone && c.Jitter != JitterLimits:
		return registry.Errorf(registry.CodeInvalid, "limits: jitter %q: want %s or %s", c.Jitter, JitterNone, JitterLimits)
	case c.Rare < 0 || c.Rare == 1 || c.Rare > evidence.MostRare:
		return registry.Errorf(registry.CodeInvalid, "limits: rare %d: want 2 to %d", c.Rare, evidence.MostRare)
	case *c == ConsistencyLimits{}:
		return registry.Errorf(registry.CodeInvalid, "limits: consistency asks for nothing")
	}
	return nil
}

// ExactRepeats reports whether two runs of the same cases must not differ at all.
func (l Limits) ExactRepeats() bool {
	return l.Consistency != nil && l.Consistency.Jitter == JitterNone
}

// JudgeNotRun gives a reason for each check that the limits want and that nothing is known of, and one if there are fewer repeated
// runs than they ask for: those are undecided.
func (l Limits) JudgeNotRun(checks evidence.Checks) []evidence.Reason {
	reasons := l.judgeRare(checks)
	if l.Consistency == nil || !l.Consistency.Required && !l.ExactRepeats() {
		return reasons
	}
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

// judgeRare gives a reason if the repeated runs would miss a difference that is as rare as the limits name more often than half of the time.
func (l Limits) judgeRare(checks evidence.Checks) []evidence.Reason {
	missed := checks.MissedOneIn()
	if l.Consistency == nil || missed >= l.Consistency.Rare {
		return nil
	}
	ran := "none ran"
	if missed > 0 {
		ran = fmt.Sprintf("the runs were enough for 1 of %d", missed)
	}
	return []evidence.Reason{{Code: ReasonNotRun, Trial: evidence.TrialRepeat, Message: fmt.Sprintf(
		"the limits ask for repeated runs that miss a difference in 1 of %d requests at most half of the time, and %s: verify where there is more time, or ask for less (limits.consistency.rare)",
		l.Consistency.Rare, ran)}}
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
