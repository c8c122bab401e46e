package pipeline

import (
	"context"
	"path/filepath"
	"strconv"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Again does a step that a build took once more and gives its class: the step is job, done by
// driver; runner, of this profile, runs what it leaves on a file of count cases.
func Again(ctx context.Context, driver, runner toolchain.Driver, profile toolchain.Profile,
	job toolchain.Job, file string, count int, scratch string) (registry.Reproducibility, error) {
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
	s := takenStep{name: "step", outcome: first, driver: driver, job: job}
	err = repeater{scratch: scratch, cases: set.Engines(), shards: set.Record.Shards}.repeat(ctx, (&Pipeline{}).report(), &s, runnable{tool: tool{Toolchain: Toolchain{Profile: profile, Timing: runner}}})
	return s.reproducible, err
}

// CutAndJoin cuts the shards in dir into chunks of size cases, joins the pieces of each shard
// again, and returns the bytes of the tensor x of all.
func CutAndJoin(shards []registry.Shard, dir, scratch string, size int) ([]byte, error) {
	cases := material{dir: dir, set: &registry.CaseSet{Shards: shards}}
	for _, s := range shards {
		in, err := toolchain.FileInput(toolchain.RoleCases, s.File, filepath.Join(dir, s.File))
		if err != nil {
			return nil, err
		}
		cases.files = append(cases.files, registry.File{Path: s.File, Digest: in.Digest, Size: in.Size})
	}
	parts := make(map[string][]rowsOf)
	for first := 0; ; first += size {
		pieces := piecesOf(shards, first, size)
		if len(pieces) == 0 {
			break
		}
		for _, p := range pieces {
			in, err := p.input(cases, filepath.Join(scratch, strconv.Itoa(first)))
			if err != nil {
				return nil, err
			}
			count := int64(p.end - p.first)
			parts[p.shard.File] = append(parts[p.shard.File], rowsOf{in.Path, 0, count, count})
		}
	}
	var all []byte
	for _, s := range shards {
		joined := filepath.Join(scratch, s.File)
		if err := writeRows(joined, parts[s.File]); err != nil {
			return nil, err
		}
		f, err := tensor.Open(joined, tensor.Limits{})
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

// CheckScales is checkScales.
var CheckScales = checkScales

// OutcomeModel is outcomeModel, of which it gives the names of the files.
func OutcomeModel(outcome toolchain.Outcome, external []toolchain.Input) (names []string, err error) {
	files, _, err := outcomeModel(outcome, external)
	for _, f := range files {
		names = append(names, f.Name+" "+f.Path)
	}
	return names, err
}
