package cases

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxSeparate is how many cases are put into files of their own at most: each is a file of a part.
const maxSeparate = 1000

// Separate puts every case into a shard of its own, in files in the folder scratch. So outputs can have
// shapes that depend on the values of a case: outputs in one shard all have one shape. It does nothing to
// more than 1000 cases.
func (cs *Set) Separate(scratch string) error {
	if cs.Record.Count > maxSeparate {
		return nil
	}
	apart := Set{Record: cs.Record, Warnings: cs.Warnings}
	apart.Record.Shards, apart.Record.Count = nil, 0
	for i, shard := range cs.Record.Shards {
		f, err := openShard(cs.Files[i])
		if err != nil {
			return err
		}
		for row := range shard.Count {
			name := shard.File
			if shard.Count > 1 {
				name = fmt.Sprintf("%s-%05d.safetensors", strings.TrimSuffix(shard.File, ".safetensors"), row)
			}
			if err = apart.addRow(f, cs.Files[i].Role, filepath.Join(scratch, "separate", name), name, row, shard.Count); err != nil {
				break
			}
			if i < len(cs.from) {
				apart.from = append(apart.from, fmt.Sprintf("%s (case %d)", cs.from[i], row))
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	*cs = apart
	return nil
}

// addRow writes a row of all tensors with so many rows as a shard, and adds that.
func (cs *Set) addRow(f shard, role, path, name string, row, count int) error {
	one := make(map[string]tensor.Tensor)
	for _, of := range f.Names() {
		if info, _ := f.Info(of); len(info.Shape) == 0 || info.Shape[0] != int64(count) {
			continue
		}
		t, err := f.Rows(of, int64(row), int64(row)+1)
		if err != nil {
			return TensorError(err)
		}
		one[of] = t
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := WriteShard(path, one); err != nil {
		return registry.Errorf(registry.CodeInternal, "write %s: %w", path, err)
	}
	input, err := toolchain.FileInput(role, name, path)
	if err != nil {
		return err
	}
	cs.Add(input, 1)
	return nil
}
