package pipeline

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// reproduce does every step again, each in a process of its own, and notes in the steps how
// it came out. An engine of which a step fails the second time gets the error as its failure.
// Errors: those of the import, of the reference, and of ctx.
func (m maker) reproduce(ctx context.Context, to reporter, all *made) error {
	if m.plan.Import != nil {
		if err := m.again(ctx, to, &all.imported, m.runnableImport(all.imported)); err != nil {
			return err
		}
	}
	if m.known == nil {
		if err := m.again(ctx, to, &all.golden.step, runnable{}); err != nil {
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
		if err := m.again(ctx, to, &e.steps[j], by); err != nil {
			return err
		}
	}
	return nil
}

// runnable is how what a step leaves is run on this machine. The zero runnable is for what does not run here.
type runnable struct {
	tool   tool
	engine registry.Engine
	beside []toolchain.Input // what it needs beside its own files
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

// candidate is the files that a step left as an engine of a run.
func (r runnable) candidate(id string, files []toolchain.OutputFile) (candidate, error) {
	model, err := loadableOutput(r.tool.Profile, id, files)
	for _, in := range r.beside {
		in.Name = path.Join(id, in.Name)
		if model.inputs = append(model.inputs, in); in.Role == toolchain.RoleOperators {
			model.operators = append(model.operators, in.Name)
		}
	}
	return candidate{id: id, engine: r.engine, tool: r.tool, model: model}, err
}

// again does a step once more. by runs what it leaves.
func (m maker) again(ctx context.Context, to reporter, s *takenStep, by runnable) error {
	dir, err := os.MkdirTemp(m.scratch, "again-*")
	if err != nil {
		return err
	}
	done := to.step("again: " + s.name)
	var same func(context.Context, toolchain.Outcome) (bool, error)
	if by.tool.Timing != nil {
		same = func(ctx context.Context, second toolchain.Outcome) (bool, error) {
			return m.computeSame(ctx, by, s.outcome, second, filepath.Join(dir, "outputs"))
		}
	}
	s.reproducible, err = toolchain.Reproduce(ctx, s.driver, s.job, s.outcome, filepath.Join(dir, "out"), same)
	done(string(s.reproducible), err)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "again: %s: %w", s.name, err)
	}
	return nil
}

// The engines of a run that compares what a step left with what it left the second time.
const firstID, secondID = "first", "second"

// computeSame runs what a step left each time on all cases and compares every output bit
// for bit.
func (m maker) computeSame(ctx context.Context, by runnable, first, second toolchain.Outcome, dir string) (bool, error) {
	run := by.tool.run(toolchain.RunOptions{})
	run.job.Machine, run.job.Inputs = machine(m.node), slices.Clone(m.inputs.Cases.Engines())
	run.job.Budget = m.budgets[by.tool.identity.Name]
	for i, files := range [][]toolchain.OutputFile{first.Files, second.Files} {
		c, err := by.candidate([]string{firstID, secondID}[i], files)
		if err != nil {
			return false, err
		}
		run.addCandidate(c)
	}
	run.fix()
	if _, err := run.do(ctx, dir); err != nil {
		return false, err
	}
	for _, shard := range m.inputs.Cases.Record.Shards {
		one, ok := run.outcome.File("outputs/" + firstID + "/" + shard.File)
		other, too := run.outcome.File("outputs/" + secondID + "/" + shard.File)
		if !ok || !too || one.Digest != other.Digest {
			return false, nil
		}
	}
	return true, nil
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
