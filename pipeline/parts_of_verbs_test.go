//go:build cgo

package pipeline_test

import (
	"context"
	"path/filepath"
	"strconv"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// again does a step that a build took once more and gives its class: the step is job, done by
// driver; runner, of this profile, runs what it leaves on a file of count cases.
func again(ctx context.Context, driver, runner toolchain.Driver, profile toolchain.Profile,
	job toolchain.Job, file string, count int, scratch string) (evidence.Reproducibility, error) {
	var set cases.Set
	shard, err := toolchain.FileInput(toolchain.RoleCases, "cases-00000.safetensors", file)
	if err != nil {
		return "", err
	}
	set.Add(shard, count)
	first, err := driver.Do(ctx, job, scratch+"/first")
	if err != nil {
		return "", err
	}
	s := run.Step{Name: "step", Outcome: first, Driver: driver, Job: job}
	err = run.Repeater{Scratch: scratch, Cases: set.Engines(), Shards: set.Record.Shards}.Repeat(ctx, (&run.Env{}).Report(), &s, run.Runnable{Tool: run.Tool{Toolchain: run.Toolchain{Profile: profile, Timing: runner}}})
	return s.Reproducible, err
}

// cutAndJoin cuts the shards in dir into chunks of size cases, joins the pieces of each shard
// again, and returns the bytes of the tensor x of all.
func cutAndJoin(shards []artifact.Shard, dir, scratch string, size int) ([]byte, error) {
	cases := run.Material{Dir: dir, Set: &artifact.CaseSet{Shards: shards}}
	for _, s := range shards {
		in, err := toolchain.FileInput(toolchain.RoleCases, s.File, filepath.Join(dir, s.File))
		if err != nil {
			return nil, err
		}
		cases.Files = append(cases.Files, artifact.File{Path: s.File, Digest: in.Digest, Size: in.Size})
	}
	parts := make(map[string][]run.RowsOf)
	for first := 0; ; first += size {
		pieces := run.PiecesOf(shards, first, size)
		if len(pieces) == 0 {
			break
		}
		for _, p := range pieces {
			in, err := p.Input(cases, filepath.Join(scratch, strconv.Itoa(first)))
			if err != nil {
				return nil, err
			}
			count := int64(p.End - p.First)
			parts[p.Shard.File] = append(parts[p.Shard.File], run.RowsOf{Path: in.Path, First: 0, End: count, Count: count})
		}
	}
	var all []byte
	for _, s := range shards {
		joined := filepath.Join(scratch, s.File)
		if err := run.WriteRows(joined, parts[s.File]); err != nil {
			return nil, err
		}
		f, err := tensorfile.Open(joined, tensorfile.Limits{})
		if err != nil {
			return nil, err
		}
		x, err := f.Rows("x", 0, int64(s.Count))
		if err != nil {
			return nil, err
		}
		all = append(all, x.Data...)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// outcomeModel is outcomeModel, of which it gives the names of the files.
func outcomeModel(outcome toolchain.Outcome, external []toolchain.Input) (names []string, err error) {
	files, _, err := ingest.OutcomeModel(outcome, external)
	for _, f := range files {
		names = append(names, f.Name+" "+f.Path)
	}
	return names, err
}
