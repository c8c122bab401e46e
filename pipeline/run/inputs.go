package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// rowsAtOnce is how many rows of a tensor are copied at once.
const rowsAtOnce = 64

// withoutAnswers returns the inputs of a run with cases that have neither recorded outputs nor labels, as a user's own program gets
// them: it could return them in place of computing any. Files without such tensors stay as they are; others are written anew in dir.
func withoutAnswers(inputs []toolchain.Input, labels, dir string) ([]toolchain.Input, error) {
	inputs = slices.Clone(inputs)
	for i, in := range inputs {
		if in.Role != toolchain.RoleCases {
			continue
		}
		to := filepath.Join(dir, fmt.Sprintf("%05d.safetensors", i))
		written, err := copyWithoutAnswers(in.Path, labels, to)
		if err != nil {
			return nil, cases.TensorError(fmt.Errorf("%s: %w", in.Name, err))
		}
		if !written {
			continue
		}
		if inputs[i], err = toolchain.FileInput(in.Role, in.Name, to); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// copyWithoutAnswers writes nothing if there is nothing to leave out.
func copyWithoutAnswers(from, labels, to string) (written bool, err error) {
	f, err := tensorfile.Open(from, tensorfile.Limits{})
	if err != nil {
		return false, err
	}
	defer f.Close()
	kept := slices.DeleteFunc(f.Names(), func(name string) bool { return cases.IsOutput(name) || name == labels })
	if len(kept) == len(f.Names()) {
		return false, nil
	}
	infos := make(map[string]tensor.Info, len(kept))
	for _, name := range kept {
		infos[name], _ = f.Info(name)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return false, err
	}
	out, err := os.Create(to)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w, err := tensorfile.NewShardWriter(out, infos, nil)
	if err != nil {
		return false, err
	}
	for _, name := range kept {
		if len(infos[name].Shape) == 0 {
			return false, fmt.Errorf("%s has no dimension for cases", name)
		}
		count := infos[name].Shape[0]
		for row := int64(0); row < count; row += rowsAtOnce {
			t, err := f.Rows(name, row, min(row+rowsAtOnce, count))
			if err == nil {
				err = w.Append(name, t)
			}
			if err != nil {
				return false, err
			}
		}
	}
	return true, w.Close()
}
