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
// it came out.
func (m maker) reproduce(ctx context.Context, to reporter, all *made) error {
	if m.plan.Import != nil {
		runner := m.tools[onnxRuntime]
		if err := m.again(ctx, to, &all.imported, runner.Engines, runner.Profile); err != nil {
			return err
		}
	}
	if m.known == nil {
		if err := m.again(ctx, to, &all.golden.step, nil, toolchain.Profile{}); err != nil {
			return err
		}
	}
	for i := range all.engines {
		e := &all.engines[i]
		for j := range e.steps {
			runner := e.tool
			if verb := e.steps[j].job.Verb; verb == toolchain.VerbQuantize || verb == toolchain.VerbCompress {
				runner = m.tools[onnxRuntime]
			}
			driver := runner.Timing
			if runner.Profile.CompileOnly {
				driver = nil
			}
			if err := m.again(ctx, to, &e.steps[j], driver, runner.Profile); err != nil {
				return err
			}
		}
	}
	return nil
}

// again does a step once more. runner runs what it leaves; nil where nothing does.
func (m maker) again(ctx context.Context, to reporter, s *takenStep, runner toolchain.Driver, profile toolchain.Profile) error {
	done := to.step("again: " + s.name)
	dir, err := os.MkdirTemp(m.scratch, "again-*")
	if err != nil {
		return err
	}
	var same func(context.Context, toolchain.Outcome) (bool, error)
	if runner != nil {
		same = func(ctx context.Context, second toolchain.Outcome) (bool, error) {
			return m.computeSame(ctx, runner, profile, s.outcome, second, filepath.Join(dir, "outputs"))
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
func (m maker) computeSame(ctx context.Context, runner toolchain.Driver,
	profile toolchain.Profile, first, second toolchain.Outcome, dir string) (bool, error) {
	job := toolchain.Job{
		Verb: toolchain.VerbRun, Machine: machine(m.node), Inputs: slices.Clone(m.inputs.Cases.Files),
		Run: &toolchain.RunOptions{Threads: runThreads, Level: profile.Level},
	}
	for _, made := range []struct {
		id      string
		outcome toolchain.Outcome
	}{{firstID, first}, {secondID, second}} {
		for _, f := range made.outcome.Files {
			job.Inputs = append(job.Inputs, toolchain.Input{
				Role: toolchain.RoleModel, Name: path.Join(made.id, f.Name), Path: f.Path, Digest: f.Digest, Size: f.Size})
		}
		job.Run.Engines = append(job.Run.Engines, toolchain.RunEngine{ID: made.id, Path: path.Join(made.id, profile.Entry)})
	}
	outcome, err := runner.Do(ctx, job, dir)
	if err != nil {
		return false, err
	}
	for _, shard := range m.inputs.Cases.Record.Shards {
		one, ok := outcome.File("outputs/" + firstID + "/" + shard.File)
		other, too := outcome.File("outputs/" + secondID + "/" + shard.File)
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
