package ingest

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// CheckScales checks the scales and zero points of a model that came quantized. files are the model file, and then its external
// data. Errors: CodeInvalid, which names the node.
func CheckScales(files []toolchain.Input) (err error) {
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			err = errors.Join(err, f.Close())
		}
	}()
	open := func(in toolchain.Input) (io.ReaderAt, int64, error) {
		f, err := in.Open()
		if err != nil {
			return nil, 0, err
		}
		opened = append(opened, f)
		return f, in.Size, nil
	}
	model, size, err := open(files[0])
	if err != nil {
		return err
	}
	return onnx.CheckScales(model, size, bound.Limits{}, func(location string) (io.ReaderAt, int64, error) {
		i := slices.IndexFunc(files, func(in toolchain.Input) bool { return in.Name == path.Clean(location) })
		if i < 1 {
			return nil, 0, registry.Errorf(registry.CodeInvalid, "external data %q is missing; put the file beside the model", location)
		}
		return open(files[i])
	})
}
