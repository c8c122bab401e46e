package consistency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// outOfTime reports whether a run did not begin or did not end for want of time.
func outOfTime(err error) bool { return errors.Is(err, ErrNoTime) || errors.Is(err, ErrStopped) }

// again compares the runs of the cases, or notes that the engine does not run them again. Time and
// memory that were used up are no fault of the engine.
func (f *findings) again(ctx context.Context, done outcome) error {
	err := done.failed[f.set.repeat[0].Name]
	if err == nil {
		return f.repeats(ctx, done)
	}
	p := validators.TrialOf(evidence.TrialRepeat).Check("")
	f.broke(&p, "", validators.TrialOf(p.Trial).Code, "the engine does not run again", err)
	f.checks = append(f.checks, p)
	return nil
}

// broke notes that an engine did not run where the reference model did, or where it ran before. Time
// and memory that were not there are no fault of the engine. But a run that was stopped by time can
// be one that would hang on a node: it leaves the engine undecided.
func (f *findings) broke(p *evidence.Check, note, code, failed string, err error) {
	f.late = f.late || outOfTime(err)
	switch {
	case errors.Is(err, ErrStopped):
		p.Message = "stopped: " + err.Error()
		f.open = append(f.open, evidence.Reason{Code: validators.ReasonNotRun, Trial: p.Trial,
			Message: fmt.Sprintf("the consistency check %s did not end: %v; if this machine was busy, run verify again where it is less so", p.Name(), err)})
	case errors.Is(err, ErrNoTime):
		p.Message = "not run: " + err.Error()
	default:
		p.Message = failed + ": " + err.Error()
	}
	p.Message = sentence(note, p.Message)
	if p.Verdict = evidence.VerdictUndecided; !registry.HasCode(err, registry.CodeUnavailable) {
		p.Verdict = evidence.VerdictFail
		f.fail(code, strings.TrimPrefix(p.Size+": "+failed, ": ")+": "+err.Error(), nil)
	}
}

// nothing leaves the engine undecided if no check could be done and time is a cause.
func (f *findings) nothing() {
	ran := slices.ContainsFunc(f.checks, func(p evidence.Check) bool {
		return p.Verdict != evidence.VerdictUndecided && !p.NotForModel()
	})
	if ran || !f.late || len(f.open) > 0 {
		return
	}
	message := "no consistency check could be done in the time that there is for them"
	for _, p := range f.checks[:min(len(f.checks), maxReasons)] {
		message += "; " + p.Name() + ": " + p.Message
	}
	f.open = append(f.open, evidence.Reason{Code: validators.ReasonNotRun, Trial: evidence.TrialRepeat, Message: message})
}
