package build

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// reproduce does every step again, each in a process of its own, and notes in the steps how
// it came out. An engine of which a step fails the second time gets the error as its failure.
// Errors: those of the import, of the reference, and of ctx.
func reproduce(ctx context.Context, m Maker, to run.Reporter, all *made) error {
	if m.Plan.Import != nil {
		if err := repeater(m).Repeat(ctx, to, &all.imported, runnableImport(m, all.imported)); err != nil {
			return err
		}
	}
	if m.known == nil {
		if err := repeater(m).Repeat(ctx, to, &all.golden.Step, run.Runnable{}); err != nil {
			return err
		}
	}
	for i := range all.engines {
		e := &all.engines[i]
		if e.failed != nil {
			continue
		}
		if e.failed = makeAgain(ctx, m, to, e); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// makeAgain does the steps of an engine once more.
func makeAgain(ctx context.Context, m Maker, to run.Reporter, e *BuiltEngine) error {
	for j := range e.steps {
		var by run.Runnable
		switch verb := e.steps[j].Job.Verb; {
		case verb == toolchain.VerbQuantize || verb == toolchain.VerbCompress:
			by = runnable(m, m.Tools[run.OnnxRuntime], artifact.Engine{})
		case e.loaded:
			by = runnable(m, e.Tool, e.Engine)
		}
		if err := repeater(m).Repeat(ctx, to, &e.steps[j], by); err != nil {
			return err
		}
	}
	return nil
}

// repeater does the steps of this build once more.
func repeater(m Maker) run.Repeater {
	return run.Repeater{Scratch: m.Scratch, Budgets: m.Budgets, Machine: run.Machine(m.Node),
		Cases: m.Inputs.Cases.Engines(), Shards: m.Inputs.Cases.Record.Shards}
}

// runnable is how a tool runs what a step of this build leaves.
func runnable(m Maker, by run.Tool, engine artifact.Engine) run.Runnable {
	return run.Runnable{Tool: by, Engine: engine, Beside: m.Inputs.Operators}
}

// runnableImport is how the model that an import leaves is run: beside the weights that it did not write.
func runnableImport(m Maker, imported run.Step) run.Runnable {
	by := runnable(m, m.Tools[run.OnnxRuntime], artifact.Engine{})
	for _, in := range m.Inputs.Model {
		if _, written := imported.Outcome.File(in.Name); !written {
			by.Beside = append(slices.Clip(by.Beside), in)
		}
	}
	return by
}

// reproducible is the class of an engine: the worst of what it came from. Empty where
// it was not checked.
func reproducible(b making, e BuiltEngine) evidence.Reproducibility {
	if !b.options.CheckReproducible {
		return ""
	}
	worst := evidence.ReproducibleBytes
	for _, s := range stepsOf(b, e) {
		if worst.AtLeast(s.Reproducible) {
			worst = s.Reproducible
		}
	}
	return worst
}

// stepsOf are the steps that led to an engine.
func stepsOf(b making, e BuiltEngine) []run.Step {
	if b.Plan.Import == nil {
		return e.steps
	}
	return append([]run.Step{b.imported}, e.steps...)
}
