package format

import (
	"fmt"
	"io"
	"os"
	"path"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/classical"
	"mlpromote.dev/mlpromote/validators/format/gguf"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Gate checks files without an expected kind: assets, results of drivers, and pushed and imported
// files. It refuses what runs code, what hides its content, and what
// harms its readers. The zero Gate accepts no native code.
type Gate struct {
	// NativeCode is true if the engine is declared as native code.
	NativeCode bool
	// Beside returns the size of another file of the same engine, by its path in it. It checks the
	// external data of ONNX models. nil: an ONNX model must not have external data.
	Beside func(name string) (size int64, ok bool)
	Limits bound.Limits
}

// Check returns nil if the size bytes of r, the file of that name, may be in a release. It reads a
// bounded part of them, but of JSON, XML and boosted trees all, in bounded memory, and executes nothing. Errors:
// CodeUnsafe, with the place in the file and what to do; CodeInvalid for a damaged ONNX model; others of r.
func (g Gate) Check(name string, r io.ReaderAt, size int64) error {
	found, err := inspect(r, size)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if says, todo := g.objection(found); todo != "" {
		return registry.Errorf(registry.CodeUnsafe, "%s: its bytes are %s%s", name, says, todo)
	}
	if found.kind == ONNX {
		return bound.InFile(name, g.checkONNX(name, r, size))
	}
	return bound.InFile(name, checkStructure(found.kind, r, size))
}

// checkStructure checks the formats whose readers trust what a file says about its own sizes and nesting.
// It reads all of the file, in bounded memory. Errors: CodeUnsafe, and CodeInvalid for a file that is cut.
func checkStructure(kind Kind, r io.ReaderAt, size int64) error {
	switch kind {
	case GGUF:
		_, err := gguf.Read(r, size)
		return err
	case XGBoost:
		return classical.CheckXGBoost(r, size)
	case LightGBM:
		return classical.CheckLightGBM(r, size)
	case PMML:
		return classical.CheckPMML(r, size)
	}
	return nil
}

// CheckFile does [Gate.Check] for an open file. Errors use its name.
func (g Gate) CheckFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return g.Check(f.Name(), f, info.Size())
}

// objection says what the bytes are and what to do instead; todo is empty if they may pass.
func (g Gate) objection(found finding) (says, todo string) {
	says = found.kind.Describe()
	if found.detail != "" {
		says += " (" + found.detail + ")"
	}
	switch {
	case found.kind.pickled():
		return says, ", which runs code when it is loaded: leave it out, or save its content as safetensors, as npy without objects, or as JSON"
	case found.kind.risky():
		return says, ", which can run code when it is loaded: leave it out, or export the model to ONNX"
	case found.hidden():
		return found.detail, ": what cannot be looked into is refused: unpack it, and name the files themselves"
	case found.kind.native() && !g.NativeCode:
		return says, ": only an engine that is labelled native-code may hold it: leave it out, or let the toolchain declare native_code: true"
	}
	return says, ""
}

// checkONNX checks that the external data of a model is among the files beside it.
func (g Gate) checkONNX(name string, r io.ReaderAt, size int64) error {
	m, err := onnx.Read(&bound.Window{R: r, Size: size}, size, g.Limits)
	if err != nil {
		return err
	}
	return onnx.CheckExternalSizes(m, func(location string) (int64, bool) {
		if g.Beside == nil {
			return 0, false
		}
		return g.Beside(path.Join(path.Dir(name), location))
	})
}
