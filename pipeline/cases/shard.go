package cases

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// shard is an open safetensors file.
type shard struct {
	*tensorfile.File
	closer io.Closer
}

// openShard reads the header of an input. Errors name the file.
func openShard(in toolchain.Input) (shard, error) {
	f, err := in.Open()
	if err != nil {
		return shard{}, err
	}
	s, err := readShard(f)
	if err != nil {
		return shard{}, errors.Join(err, f.Close())
	}
	return s, nil
}

// readShard reads the header of an open file, which the shard closes.
func readShard(f *os.File) (shard, error) {
	info, err := f.Stat()
	if err != nil {
		return shard{}, err
	}
	file, err := tensorfile.NewFile(f, info.Size(), tensorfile.Limits{})
	if err != nil {
		return shard{}, TensorError(fmt.Errorf("%s: %w", f.Name(), err))
	}
	return shard{file, f}, nil
}

// Close closes the file.
func (s shard) Close() error { return s.closer.Close() }

// convertNpz writes the tensors of an open npz file, which it closes, as a shard and opens
// that.
func convertNpz(f *os.File, to string) (*os.File, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tensors, err := tensorfile.ReadNpz(f, info.Size(), tensorfile.Limits{})
	if err != nil {
		return nil, TensorError(fmt.Errorf("%s: %w", f.Name(), err))
	}
	if err := WriteShard(to, tensors); err != nil {
		return nil, err
	}
	return os.Open(to)
}

// WriteShard writes tensors to a new safetensors file.
func WriteShard(path string, tensors map[string]tensor.Tensor) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := tensorfile.Write(f, tensors, nil); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// TensorError returns an error of package tensor, which names the file, with its code: CodeUnsafe
// for pickles, otherwise CodeInvalid.
func TensorError(err error) error {
	if errors.Is(err, tensor.ErrUnsafe) {
		return registry.Errorf(registry.CodeUnsafe, "%w", err)
	}
	return registry.Errorf(registry.CodeInvalid, "%w", err)
}

// badCases gives an error of reading cases its code.
func badCases(file string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return registry.Errorf(registry.CodeInvalid, "cases: %w", err)
	}
	return TensorError(fmt.Errorf("%s: %w", file, err))
}
