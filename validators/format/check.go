package format

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Check returns nil if the bytes of the file at path are of kind want, and otherwise an error
// with the reason. An ONNX model must be complete, within lim, and have its external data in
// its own folder. For other kinds it checks the beginning and the size.
//
// Pickles, Unknown and Empty are always refused, even if wanted. Kinds that are or may be code
// are accepted only if want is exactly that kind. For these, and for an ONNX model with files
// outside its folder, the error is [registry.CodeUnsafe]. Any other problem of the file is
// [registry.CodeInvalid]; a read error of the disk is [registry.CodeInternal].
func Check(path string, want Kind, lim bound.Limits) error {
	if want == ONNX {
		m, err := OpenONNX(path, lim)
		if err != nil {
			return err
		}
		return bound.InFile(path, onnx.CheckExternalData(filepath.Dir(path), m))
	}
	f, err := bound.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return CheckFile(f, want, lim)
}

// CheckFile does [Check] for an open file, for all kinds except ONNX, which [ReadONNXFile]
// reads. Errors use the name of f.
func CheckFile(f *os.File, want Kind, lim bound.Limits) error {
	size, found, err := look(f, lim)
	if err != nil {
		return err
	}
	if found.kind == want && want != Unknown && want != Empty && want != ONNX && !want.pickled() {
		return bound.InFile(f.Name(), checkStructure(want, f, size))
	}
	return refuse(f.Name(), found, want)
}

// OpenONNX reads the model at path like [onnx.Read], after checking that the file is regular and
// that its bytes are not of another kind. Errors: as [Check], with the name of the
// file. It does not check the external data.
func OpenONNX(path string, lim bound.Limits) (*onnx.Model, error) {
	f, err := bound.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadONNXFile(f, lim)
}

// ReadONNXFile does [OpenONNX] for an open file.
func ReadONNXFile(f *os.File, lim bound.Limits) (*onnx.Model, error) {
	size, found, err := look(f, lim)
	if err != nil {
		return nil, err
	}
	path := f.Name()
	if found.kind != ONNX && (found.kind != Unknown || found.detail != "") {
		return nil, refuse(path, found, ONNX)
	}
	m, err := onnx.Read(f, size, lim)
	if err != nil && found.kind == Unknown {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: its bytes are not an ONNX model (%w)", path, err)
	}
	return m, bound.InFile(path, err)
}

// look returns the kind of an open file, which must be regular and not too large.
func look(f *os.File, lim bound.Limits) (size int64, found finding, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, finding{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if err := acceptable(f.Name(), info, lim.WithDefaults().MaxBytes); err != nil {
		return 0, finding{}, err
	}
	if found, err = inspect(f, info.Size()); err != nil {
		return 0, finding{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return info.Size(), found, nil
}

// acceptable checks what the file system reports about a file.
func acceptable(path string, info fs.FileInfo, maxBytes int64) error {
	switch {
	case info.IsDir():
		return registry.Errorf(registry.CodeInvalid, "%s is a folder; name the model file in it", path)
	case !info.Mode().IsRegular():
		return registry.Errorf(registry.CodeInvalid,
			"%s is not a regular file (%v); copy the model into one", path, info.Mode().Type())
	case info.Size() > maxBytes:
		return registry.Errorf(registry.CodeInvalid, "%s has %d bytes; at most %d are read", path, info.Size(), maxBytes)
	}
	return nil
}

// refuse returns the error for a file of another kind than want.
func refuse(path string, found finding, want Kind) error {
	says := found.kind.Describe()
	if found.detail != "" {
		says += " (" + found.detail + ")"
	}
	switch {
	case found.cut:
		return registry.Errorf(registry.CodeInvalid,
			"%s is cut off or damaged: it begins as a zip archive, such as a .keras, .skops or .npz file, and its end cannot be read; copy or save it again", path)
	case found.kind == Unknown && found.unsafe:
		return registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, expected %s; unpack it, and name the model file in it", path, found.detail, want.Describe())
	case found.kind == Empty:
		return registry.Errorf(registry.CodeInvalid,
			"%s is empty, expected %s; export or download it again", path, want.Describe())
	case found.kind.pickled():
		return registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, expected %s; pickles run code when they are loaded: export the model to ONNX where it was trained, and name that file",
			path, says, want.Describe())
	case found.kind == Skops:
		return registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, expected %s; where it is the source of a model, say so: format: skops", path, says, want.Describe())
	case found.kind == SavedModel:
		return registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, expected %s; where it is the source of a model, name its folder and say so: format: savedmodel",
			path, says, want.Describe())
	case found.kind == TFLite:
		return registry.Errorf(registry.CodeInvalid,
			"%s: its bytes are %s, expected %s; where it is the source of a model, say so: format: tflite", path, says, want.Describe())
	case found.kind == XGBoost, found.kind == LightGBM, found.kind == PMML, found.kind == JAXExport:
		return registry.Errorf(registry.CodeInvalid,
			"%s: its bytes are %s, expected %s; where it is the source of a model, say so: format: %s", path, says, want.Describe(), found.kind)
	case found.kind.CarriesCode():
		return registry.Errorf(registry.CodeUnsafe,
			"%s: its bytes are %s, expected %s; it can run code when it is loaded: export the model to ONNX where it was trained, and name that file",
			path, says, want.Describe())
	}
	return registry.Errorf(registry.CodeInvalid,
		"%s: its bytes are %s, expected %s; convert the model or name another file",
		path, says, want.Describe())
}
