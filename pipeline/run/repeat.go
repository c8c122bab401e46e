package run

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Repeater does a step that was done once more, and compares what both runs left.
type Repeater struct {
	Scratch string
	Budgets map[string]toolchain.Budget // by toolchain
	Machine string                      // the class of this machine
	Cases   []toolchain.Input           // what both results are run on
	Shards  []artifact.Shard            // of the cases
}

// Runnable is how what a step leaves is run on this machine. The zero runnable is for what does not run here.
type Runnable struct {
	Tool   Tool
	Engine artifact.Engine
	Beside []toolchain.Input // what it needs beside its own files
}

// Candidate is the files that a step left as an engine of a run.
func (r Runnable) Candidate(id string, files []toolchain.OutputFile) (Candidate, error) {
	model, err := LoadableOutput(r.Tool.Profile, id, files)
	for _, in := range r.Beside {
		in.Name = path.Join(id, in.Name)
		if model.Inputs = append(model.Inputs, in); in.Role == toolchain.RoleOperators {
			model.Operators = append(model.Operators, in.Name)
		}
	}
	return Candidate{ID: id, Engine: r.Engine, Tool: r.Tool, Model: model}, err
}

// Repeat does a step once more. by runs what it leaves.
func (r Repeater) Repeat(ctx context.Context, to Reporter, s *Step, by Runnable) error {
	dir, err := os.MkdirTemp(r.Scratch, "again-*")
	if err != nil {
		return err
	}
	done := to.Step("again: " + s.Name)
	var same func(context.Context, toolchain.Outcome) (bool, error)
	if by.Tool.Timing != nil {
		same = func(ctx context.Context, second toolchain.Outcome) (bool, error) {
			return r.computeSame(ctx, by, s.Outcome, second, filepath.Join(dir, "outputs"))
		}
	}
	s.Reproducible, err = toolchain.Reproduce(ctx, s.Driver, s.Job, s.Outcome, filepath.Join(dir, "out"), same)
	done(string(s.Reproducible), err)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "again: %s: %w", s.Name, err)
	}
	return nil
}

// The engines of a run that compares what a step left with what it left the second time.
const firstID, secondID = "first", "second"

// computeSame runs what a step left each time on all cases and compares every output bit
// for bit.
func (r Repeater) computeSame(ctx context.Context, by Runnable, first, second toolchain.Outcome, dir string) (bool, error) {
	run := by.Tool.Run(toolchain.RunOptions{})
	run.Job.Machine, run.Job.Inputs = r.Machine, slices.Clone(r.Cases)
	run.Job.Budget = r.Budgets[by.Tool.Identity.Name]
	for i, files := range [][]toolchain.OutputFile{first.Files, second.Files} {
		c, err := by.Candidate([]string{firstID, secondID}[i], files)
		if err != nil {
			return false, err
		}
		run.AddCandidate(c)
	}
	run.Fix()
	if _, err := run.Do(ctx, dir); err != nil {
		return false, err
	}
	for _, shard := range r.Shards {
		one, ok := run.Outcome.File("outputs/" + firstID + "/" + shard.File)
		other, too := run.Outcome.File("outputs/" + secondID + "/" + shard.File)
		if !ok || !too || one.Digest != other.Digest {
			return false, nil
		}
	}
	return true, nil
}
