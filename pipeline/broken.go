package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// reasonRun is the code of reasons about an engine that does not run.
const reasonRun = "run_failed"

// runGroup runs engines of one toolchain on all cases: in one process, or, where that fails, each in
// one of its own, so that an engine that fails does not take the others along. Errors: those of
// ctx.
func (v verification) runGroup(ctx context.Context, group runGroup, dir string, out *runOutputs) (held []string, err error) {
	results, held, err := v.runOnCases(ctx, group, dir)
	if err == nil || ctx.Err() != nil {
		out.engines = append(out.engines, results...)
		return held, ctx.Err()
	}
	if len(group.members) == 1 {
		out.broken[group.members[0].id] = err
		return held, nil
	}
	for _, c := range group.members {
		alone := group
		alone.members = []candidate{c}
		out.root[c.id] = filepath.Join(dir, "alone-"+c.id)
		more, err := v.runGroup(ctx, alone, out.root[c.id], out)
		if err != nil {
			return held, err
		}
		held = append(held, more...)
	}
	return held, nil
}

// runOnCases runs the engines of a group that are not run chunk by chunk.
func (v verification) runOnCases(ctx context.Context, group runGroup, dir string) ([]toolchain.EngineResult, []string, error) {
	run := group.tool.run(toolchain.RunOptions{Shares: true})
	run.job.Machine = machine(v.node)
	run.job.Inputs = v.cases.inputs(toolchain.RoleCases)
	for _, c := range group.members {
		run.addCandidate(c)
	}
	results, err := run.do(ctx, dir)
	return results, run.held, err
}

// brokenReport is the report about an engine that does not run, and whether it is one: an engine
// that crashes or does not load fails, if its runtime works here. One that exceeded the time or
// memory that there is remains undecided, and so does one whose runtime does not work: that says
// nothing about the engine on another machine.
func (v verification) brokenReport(ctx context.Context, c candidate, outputs runOutputs) (_ registry.ParityReport, _ validators.Findings, attach bool) {
	err := outputs.broken[c.id]
	report := registry.ParityReport{ReportHead: v.head(c, outputs.began(c.id, v.began)), Outputs: make(map[string]registry.OutputFigures)}
	report.Cases = v.casesRun()
	reason := registry.Reason{Code: reasonRun, Message: "the engine does not run: " + err.Error()}
	found := validators.Undecided(reason)
	report.Rules, report.Attempts = v.limits.V, 1+v.failures(c)
	if !registry.HasCode(err, registry.CodeUnavailable) && c.tool.works(ctx, v.scratch, v.node) {
		found = validators.Failed(reason)
	}
	found.Fold(&report.ReportHead)
	report.FinishedOn = v.p.now().UTC()
	return report, found, report.Verdict == registry.VerdictFail
}

// works reports whether the runtime itself starts on this machine.
func (t tool) works(ctx context.Context, scratch string, node registry.Node) bool {
	dir, err := os.MkdirTemp(scratch, "probe-*")
	if err != nil {
		return false
	}
	_, err = t.Timing.Do(ctx, toolchain.Job{Verb: toolchain.VerbProbe, Machine: machine(node)}, filepath.Join(dir, "out"))
	return err == nil
}

// undecided is the error about an engine of which nothing could be found out.
func undecided(label string, err error) error {
	return registry.Errorf(registry.CodeOf(err), "%s could not be verified: %w", label, err)
}

// timed runs engines and adds their times to m, in one process or, where that fails, each in one
// of its own. One that fails alone, too, has no times. Errors: those of ctx.
func (v verification) timed(ctx context.Context, turn runGroup, inputs []toolchain.Input,
	rounds int, dir string, m measured) (held []string, err error) {
	run := turn.tool.run(toolchain.RunOptions{Rounds: rounds, Warmup: timingWarmup, Order: toolchain.OrderInterleaved})
	run.job.Inputs = append(run.job.Inputs, inputs...)
	for _, c := range turn.members {
		run.addCandidate(c)
	}
	results, err := run.do(ctx, dir)
	switch {
	case err == nil || ctx.Err() != nil:
		m.add(results)
		return run.held, ctx.Err()
	case len(turn.members) == 1:
		c := turn.members[0]
		m.broken[c.id] = err
		v.p.warn(fmt.Sprintf("%s was not timed: %v", c.name(), err))
		return run.held, nil
	}
	held = run.held
	for i, c := range turn.members {
		alone := turn
		alone.members = []candidate{c}
		more, err := v.timed(ctx, alone, inputs, rounds, fmt.Sprintf("%s-alone-%d", dir, i), m)
		if err != nil {
			return held, err
		}
		m.apart[c.id] = true
		held = append(held, more...)
	}
	return held, nil
}

// checkTimed fails an engine that ran on the cases and does not run when it is timed. Exceeding the
// time or memory that there is then is no fault of its outputs.
func (m measured) checkTimed(c candidate) validators.Findings {
	err := m.broken[c.id]
	if err == nil || registry.HasCode(err, registry.CodeUnavailable) {
		return nil
	}
	return validators.Failed(registry.Reason{Code: reasonRun, Message: "the engine does not run when it is timed: " + err.Error()})
}

// name is what messages call the engine.
func (c candidate) name() string {
	if c.id == referenceID {
		return "the reference"
	}
	return c.engine.Label()
}
