package caserun

import (
	"errors"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Writer writes the outputs of one engine, shard by shard, case by case.
type Writer struct {
	dir, engine string
	names       []string
	left        int64 // cases that are still missing in the shard
	file        *os.File
	shards      *tensorfile.ShardWriter
}

// NewWriter returns a writer for outputs with these names. Its shards are files in the folder dir, with the
// names of the shards of cases.
func NewWriter(dir, engineID string, names []string) *Writer {
	return &Writer{dir: dir, engine: engineID, names: names}
}

// Append writes the outputs of the next case of a shard, in the order of the writer's names. Each has a leading
// dimension of 1, the case dimension. After the last case of the shard it closes the file.
func (w *Writer) Append(s *Shard, outputs []tensor.Tensor) error {
	if w.file == nil {
		if err := w.begin(s, outputs); err != nil {
			return err
		}
	}
	for i, name := range w.names {
		if err := w.shards.Append(name, outputs[i]); err != nil {
			return driverproc.Errorf(driverproc.BadInput,
				"engine %s: the outputs of the cases of %s have different shapes: %v", w.engine, s.Name, err)
		}
	}
	if w.left--; w.left > 0 {
		return nil
	}
	err := errors.Join(w.shards.Close(), w.file.Close())
	w.file = nil
	return err
}

// begin creates the file of a shard, for outputs with the shapes of its first case.
func (w *Writer) begin(s *Shard, first []tensor.Tensor) (err error) {
	infos := make(map[string]tensor.Info, len(first))
	for i, name := range w.names {
		info := first[i].Info()
		info.Shape = append([]int64{s.Count}, info.Shape[1:]...)
		infos[name] = info
	}
	path := filepath.Join(w.dir, filepath.FromSlash(s.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if w.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return err
	}
	w.left = s.Count
	w.shards, err = tensorfile.NewShardWriter(w.file, infos, nil)
	return err
}
