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

// repeater does a step that was done once more, and compares what both runs left.
type repeater struct {
	scratch string
	budgets map[string]toolchain.Budget // by toolchain
	machine string                      // the class of this machine
	cases   []toolchain.Input           // what both results are run on
	shards  []registry.Shard            // of the cases
}

// runnable is how what a step leaves is run on this machine. The zero runnable is for what does not run here.
type runnable struct {
	tool   tool
	engine registry.Engine
	beside []toolchain.Input // what it needs beside its own files
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

// repeat does a step once more. by runs what it leaves.
func (r repeater) repeat(ctx context.Context, to reporter, s *takenStep, by runnable) error {
	dir, err := os.MkdirTemp(r.scratch, "again-*")
	if err != nil {
		return err
	}
	done := to.step("again: " + s.name)
	var same func(context.Context, toolchain.Outcome) (bool, error)
	if by.tool.Timing != nil {
		same = func(ctx context.Context, second toolchain.Outcome) (bool, error) {
			return r.computeSame(ctx, by, s.outcome, second, filepath.Join(dir, "outputs"))
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
func (r repeater) computeSame(ctx context.Context, by runnable, first, second toolchain.Outcome, dir string) (bool, error) {
	run := by.tool.run(toolchain.RunOptions{})
	run.job.Machine, run.job.Inputs = r.machine, slices.Clone(r.cases)
	run.job.Budget = r.budgets[by.tool.identity.Name]
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
	for _, shard := range r.shards {
		one, ok := run.outcome.File("outputs/" + firstID + "/" + shard.File)
		other, too := run.outcome.File("outputs/" + secondID + "/" + shard.File)
		if !ok || !too || one.Digest != other.Digest {
			return false, nil
		}
	}
	return true, nil
}
