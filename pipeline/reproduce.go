package pipeline

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// reproduce does every step again, each in a process of its own, and notes in the steps how
// it came out. An engine of which a step fails the second time gets the error as its failure.
// Errors: those of the import, of the reference, and of ctx.
func (m maker) reproduce(ctx context.Context, to reporter, all *made) error {
	if m.plan.Import != nil {
		if err := m.repeater().repeat(ctx, to, &all.imported, m.runnableImport(all.imported)); err != nil {
			return err
		}
	}
	if m.known == nil {
		if err := m.repeater().repeat(ctx, to, &all.golden.step, runnable{}); err != nil {
			return err
		}
	}
	for i := range all.engines {
		e := &all.engines[i]
		if e.failed != nil {
			continue
		}
		if e.failed = m.makeAgain(ctx, to, e); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// makeAgain does the steps of an engine once more.
func (m maker) makeAgain(ctx context.Context, to reporter, e *builtEngine) error {
	for j := range e.steps {
		var by runnable
		switch verb := e.steps[j].job.Verb; {
		case verb == toolchain.VerbQuantize || verb == toolchain.VerbCompress:
			by = m.runnable(m.tools[onnxRuntime], registry.Engine{})
		case e.loaded:
			by = m.runnable(e.tool, e.engine)
		}
		if err := m.repeater().repeat(ctx, to, &e.steps[j], by); err != nil {
			return err
		}
	}
	return nil
}

// repeater does the steps of this build once more.
func (m maker) repeater() repeater {
	return repeater{scratch: m.scratch, budgets: m.budgets, machine: machine(m.node),
		cases: m.inputs.Cases.Engines(), shards: m.inputs.Cases.Record.Shards}
}

// runnable is how a tool runs what a step of this build leaves.
func (m maker) runnable(by tool, engine registry.Engine) runnable {
	return runnable{by, engine, m.inputs.Operators}
}

// runnableImport is how the model that an import leaves is run: beside the weights that it did not write.
func (m maker) runnableImport(imported takenStep) runnable {
	by := m.runnable(m.tools[onnxRuntime], registry.Engine{})
	for _, in := range m.inputs.Model {
		if _, written := imported.outcome.File(in.Name); !written {
			by.beside = append(slices.Clip(by.beside), in)
		}
	}
	return by
}

// reproducible is the class of an engine: the worst of what it came from. Empty where
// it was not checked.
func (b build) reproducible(e builtEngine) registry.Reproducibility {
	if !b.options.CheckReproducible {
		return ""
	}
	worst := registry.ReproducibleBytes
	for _, s := range b.stepsOf(e) {
		if worst.AtLeast(s.reproducible) {
			worst = s.reproducible
		}
	}
	return worst
}

// stepsOf are the steps that led to an engine.
func (b build) stepsOf(e builtEngine) []takenStep {
	if b.plan.Import == nil {
		return e.steps
	}
	return append([]takenStep{b.imported}, e.steps...)
}
