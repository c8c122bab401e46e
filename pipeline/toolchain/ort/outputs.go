//go:build cgo

package ort

import (
	"errors"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// writer writes the outputs of one engine, shard by shard, case by case.
type writer struct {
	dir    string // of the engine
	left   int64  // cases that are still missing in the shard
	file   *os.File
	shards *tensorfile.ShardWriter
}

// append writes the outputs of the next case of a shard.
func (w *writer) append(s *shard, e *engine) error {
	outputs, err := e.collect()
	if err != nil {
		return err
	}
	if w.file == nil {
		if err := w.begin(s, e, outputs); err != nil {
			return err
		}
	}
	for i, o := range e.outputs {
		if err := w.shards.Append(o.name, outputs[i]); err != nil {
			return driverproc.Errorf(driverproc.BadInput,
				"engine %s: the outputs of the cases of %s have different shapes: %v", e.id, s.name, err)
		}
	}
	if w.left--; w.left > 0 {
		return nil
	}
	err = errors.Join(w.shards.Close(), w.file.Close())
	w.file = nil
	return err
}

// begin creates the file of a shard, for outputs with the shapes of its first case.
func (w *writer) begin(s *shard, e *engine, first []tensor.Tensor) (err error) {
	infos := make(map[string]tensor.Info, len(first))
	for i, o := range e.outputs {
		info := first[i].Info()
		info.Shape = append([]int64{s.count}, info.Shape[1:]...)
		infos[o.name] = info
	}
	path := filepath.Join(w.dir, filepath.FromSlash(s.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if w.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return err
	}
	w.left = s.count
	w.shards, err = tensorfile.NewShardWriter(w.file, infos, nil)
	return err
}
