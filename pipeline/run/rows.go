package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// CaseRange is the cases [first, end) of a shard.
type CaseRange struct {
	Shard      artifact.Shard
	First, End int // in the shard
}

// PiecesOf are those of the cases [first, first+n) of a set, or of as many as there are.
func PiecesOf(shards []artifact.Shard, first, n int) []CaseRange {
	var pieces []CaseRange
	for _, s := range shards {
		p := CaseRange{s, max(first-s.First, 0), min(first+n-s.First, s.Count)}
		if p.First < p.End {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// Input gives the range of cases as an input of a run, under the name of its shard: a part of a
// shard as a file of its own in dir.
func (p CaseRange) Input(cases Material, dir string) (toolchain.Input, error) {
	if p.First == 0 && p.End == p.Shard.Count {
		for _, in := range cases.Inputs(toolchain.RoleCases) {
			if in.Name == p.Shard.File {
				return in, nil
			}
		}
		return toolchain.Input{}, registry.Errorf(registry.CodeTrust,
			"the cases have no file %s, which they list", p.Shard.File)
	}
	from, to := filepath.Join(cases.Dir,
		filepath.FromSlash(p.Shard.File)), filepath.Join(dir, filepath.FromSlash(p.Shard.File))
	if err := WriteRows(to, []RowsOf{{from, int64(p.First), int64(p.End), int64(p.Shard.Count)}}); err != nil {
		return toolchain.Input{}, err
	}
	return toolchain.FileInput(toolchain.RoleCases, p.Shard.File, to)
}

// RowsOf is the rows [first, end) of the tensors of a file that have count rows.
type RowsOf struct {
	Path              string
	First, End, Count int64
}

// WriteRows writes the rows of files with the same tensors behind each other, a row at a
// time, so that nothing large is in memory. Tensors with another number of rows are left
// out: they are about no cases. Errors: CodeInvalid for rows that differ in shape.
func WriteRows(path string, parts []RowsOf) (err error) {
	var files []*tensorfile.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	var total int64
	for i := range parts {
		f, err := tensorfile.Open(parts[i].Path, tensorfile.Limits{})
		if err != nil {
			return cases.TensorError(err)
		}
		files = append(files, f)
		total += parts[i].End - parts[i].First
	}
	infos := stackedInfos(files[0], parts[0].Count, total)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w, err := tensorfile.NewShardWriter(out, infos, nil)
	if err != nil {
		return cases.TensorError(fmt.Errorf("%s: %w", path, err))
	}
	for i, f := range files {
		if err := appendRows(w, f, infos, parts[i]); err != nil {
			return cases.TensorError(fmt.Errorf("%s: %w", parts[i].Path, err))
		}
	}
	return w.Close()
}

func appendRows(w *tensorfile.ShardWriter, f *tensorfile.File, infos map[string]tensor.Info, part RowsOf) error {
	for name := range infos {
		for row := part.First; row < part.End; row++ {
			t, err := f.Rows(name, row, row+1)
			if err == nil {
				err = w.Append(name, t)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stackedInfos describes the tensors of a file that have count rows, with rows of them.
func stackedInfos(f *tensorfile.File, count, rows int64) map[string]tensor.Info {
	infos := make(map[string]tensor.Info)
	for _, name := range f.Names() {
		info, _ := f.Info(name)
		if len(info.Shape) == 0 || info.Shape[0] != count {
			continue
		}
		info.Shape = append([]int64{rows}, info.Shape[1:]...)
		infos[name] = info
	}
	return infos
}
