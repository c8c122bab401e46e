package consistency

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// shard names a file of cases that are all from one shard.
func (s *Set) shard(name string, cases []slot) shard {
	name += ".safetensors"
	return shard{Input: Input{name, filepath.Join(s.Scratch, "inputs", name)}, of: s.Shards[cases[0].shard], cases: cases}
}

// store writes the cases of a shard. So many at a time are put behind each other; how joins what
// results.
func (s *Set) store(made shard, read func(slot) (map[string]tensor.Tensor, error), how joiner, size int) error {
	var groups []map[string]tensor.Tensor
	for from := 0; from < len(made.cases); from += size {
		var rows []map[string]tensor.Tensor
		for _, c := range made.cases[from : from+size] {
			row, err := read(c)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		group := rows[0] // a case alone may have inputs without dimensions
		if size > 1 {
			var err error
			if group, err = join(rows, tensor.Concat); err != nil {
				return err
			}
		}
		groups = append(groups, group)
	}
	all, err := join(groups, how)
	if err != nil {
		return err
	}
	return write(made.Path, all)
}

// joiner is tensor.Concat or tensor.Stack.
type joiner func(...tensor.Tensor) (tensor.Tensor, error)

// join joins the tensors of each name.
func join(rows []map[string]tensor.Tensor, how joiner) (map[string]tensor.Tensor, error) {
	joined := make(map[string]tensor.Tensor)
	for name := range rows[0] {
		var parts []tensor.Tensor
		for _, row := range rows {
			parts = append(parts, row[name])
		}
		var err error
		if joined[name], err = how(parts...); err != nil {
			return nil, err
		}
	}
	return joined, nil
}

// read returns the inputs of a case as they are stored, with a leading case dimension of 1.
func (s *Set) read(c slot) (map[string]tensor.Tensor, error) {
	return rowOf(filepath.Join(s.Dir, filepath.FromSlash(s.Shards[c.shard].File)), names(s.Interface.Inputs), c.row)
}

// full returns the inputs of a case as the model takes them: where a stored row has no other batch
// dimension, the leading dimension of 1 is the batch.
func (s *Set) full(c slot) (map[string]tensor.Tensor, error) {
	row, err := s.read(c)
	if err != nil {
		return nil, err
	}
	for _, input := range s.Interface.Inputs {
		_, extra := input.Stored()
		if t := row[input.Name]; len(t.Shape) == len(input.Shape)+1+extra {
			if row[input.Name], err = t.Slice(0); err != nil {
				return nil, err
			}
		}
	}
	return row, nil
}

// outputs reads a row of a file of outputs.
func (s *Set) outputs(dir, file string, row int) (map[string]tensor.Tensor, error) {
	return rowOf(filepath.Join(dir, filepath.FromSlash(file)), names(s.Interface.Outputs), row)
}

func names(of []validators.TensorInfo) []string {
	all := make([]string, len(of))
	for i, t := range of {
		all[i] = t.Name
	}
	return all
}

// rowOf reads a row of tensors of a file.
func rowOf(path string, names []string, row int) (map[string]tensor.Tensor, error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	one := make(map[string]tensor.Tensor)
	for _, name := range names {
		if one[name], err = f.Rows(name, int64(row), int64(row)+1); err != nil {
			return nil, err
		}
	}
	return one, nil
}

func write(path string, tensors map[string]tensor.Tensor) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(tensorfile.Write(f, tensors, nil), f.Close())
}

// inMemory returns tensors as a file that was opened.
func inMemory(tensors map[string]tensor.Tensor, limits tensorfile.Limits) (*tensorfile.File, error) {
	var data bytes.Buffer
	if err := tensorfile.Write(&data, tensors, nil); err != nil {
		return nil, err
	}
	return tensorfile.NewFile(bytes.NewReader(data.Bytes()), int64(data.Len()), limits)
}
