package verify

import (
	"context"
	"fmt"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// reasonRun is the code of reasons about an engine that does not run.
const reasonRun = "run_failed"

// runGroup runs engines of one toolchain on all cases: in one process, or, where that fails, each in
// one of its own, so that an engine that fails does not take the others along. Errors: those of
// ctx.
func runGroup(ctx context.Context, v Session, group run.RunGroup, dir string, out *RunOutputs) (held []string, err error) {
	results, held, err := runOnCases(ctx, v, group, dir)
	if err == nil || ctx.Err() != nil {
		out.Engines = append(out.Engines, results...)
		return held, ctx.Err()
	}
	if len(group.Members) == 1 {
		out.broken[group.Members[0].ID] = err
		return held, nil
	}
	for _, c := range group.Members {
		alone := group
		alone.Members = []run.Candidate{c}
		out.Root[c.ID] = filepath.Join(dir, "alone-"+c.ID)
		more, err := runGroup(ctx, v, alone, out.Root[c.ID], out)
		if err != nil {
			return held, err
		}
		held = append(held, more...)
	}
	return held, nil
}

// runOnCases runs the engines of a group that are not run chunk by chunk.
func runOnCases(ctx context.Context, v Session, group run.RunGroup, dir string) ([]toolchain.EngineResult, []string, error) {
	execution := group.Tool.Run(toolchain.RunOptions{Shares: true})
	execution.Job.Machine = run.Machine(v.Node)
	execution.Job.Inputs = v.Cases.Inputs(toolchain.RoleCases)
	for _, c := range group.Members {
		execution.AddCandidate(c)
	}
	results, err := execution.Do(ctx, dir)
	return results, execution.Held, err
}

// brokenReport is the report about an engine that does not run, and whether it is one: an engine
// that crashes or does not load fails, if its runtime works here. One that exceeded the time or
// memory that there is remains undecided, and so does one whose runtime does not work: that says
// nothing about the engine on another machine.
func brokenReport(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs) (_ evidence.ParityReport, _ validators.Findings, attach bool) {
	err := outputs.broken[c.ID]
	report := evidence.ParityReport{ReportHead: head(v, c, outputs.began(c.ID, v.Began)), Outputs: make(map[string]evidence.OutputFigures)}
	report.Cases = casesRun(v)
	reason := evidence.Reason{Code: reasonRun, Message: "the engine does not run: " + err.Error()}
	if v.faults[c.ID] != nil {
		reason = evidence.Reason{Code: remedy.ReasonServer, Message: err.Error()}
	}
	found := validators.Undecided(reason)
	report.Rules, report.Attempts = v.Limits.V, 1+failures(v, c)
	if !registry.HasCode(err, registry.CodeUnavailable) && c.Tool.Works(ctx, v.Scratch, v.Node) {
		found = validators.Failed(reason)
	}
	found.Fold(&report.ReportHead)
	report.FinishedOn = v.Env.Time().UTC()
	return report, found, report.Verdict == evidence.VerdictFail && v.faults[c.ID] == nil
}

// undecided is the error about an engine of which nothing could be found out.
func undecided(label string, err error) error {
	return registry.Errorf(registry.CodeOf(err), "%s could not be verified: %w", label, err)
}

// timed runs engines and adds their times to m, in one process or, where that fails, each in one
// of its own. One that fails alone, too, has no times. Errors: those of ctx.
func timed(ctx context.Context, v Session, turn run.RunGroup, inputs []toolchain.Input,
	rounds int, dir string, m measured) (held []string, err error) {
	execution := turn.Tool.Run(toolchain.RunOptions{Rounds: rounds, Warmup: m.warmup, Order: toolchain.OrderInterleaved})
	execution.Job.Inputs = append(execution.Job.Inputs, inputs...)
	for _, c := range turn.Members {
		execution.AddCandidate(c)
	}
	results, err := execution.Do(ctx, dir)
	switch {
	case err == nil || ctx.Err() != nil:
		m.add(results)
		return execution.Held, ctx.Err()
	case len(turn.Members) == 1:
		c := turn.Members[0]
		m.broken[c.ID] = err
		v.Env.Caution(fmt.Sprintf("%s was not timed: %v", c.Name(), err))
		return execution.Held, nil
	}
	held = execution.Held
	for i, c := range turn.Members {
		alone := turn
		alone.Members = []run.Candidate{c}
		more, err := timed(ctx, v, alone, inputs, rounds, fmt.Sprintf("%s-alone-%d", dir, i), m)
		if err != nil {
			return held, err
		}
		m.apart[c.ID] = true
		held = append(held, more...)
	}
	return held, nil
}

// checkTimed fails an engine that ran on the cases and does not run when it is timed. Exceeding the
// time or memory that there is then is no fault of its outputs.
func (m measured) checkTimed(c run.Candidate) validators.Findings {
	err := m.broken[c.ID]
	if err == nil || registry.HasCode(err, registry.CodeUnavailable) {
		return nil
	}
	return validators.Failed(evidence.Reason{Code: reasonRun, Message: "the engine does not run when it is timed: " + err.Error()})
}
