package plan

import (
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Compressed reports whether the engine computes another function than the reference model.
func (r Requested) Compressed() bool { return len(r.Compress) > 0 || r.Student != nil }

// needs are those of the model that the engine is made from.
func (r Requested) needs(in Inputs) onnx.Need {
	if r.Student != nil {
		return r.Student.Needs
	}
	return in.Needs
}

// planCompress says what is compressed and how.
func (e *Engine) planCompress(r Requested, tools map[string]Tool) {
	if r.Student != nil {
		e.Student = Files(r.Student.Files)
	}
	if e.Compress = r.Compress; len(r.Compress) == 0 {
		return
	}
	by := tools[r.Compressor].Identity
	e.Compressor = &artifact.Toolchain{Name: by.Name, Version: by.Version, Lock: by.Lock}
}

// options are all that decide the engine beside its model and target. The keys of an engine that is not compressed are those of
// before there was compression.
func (e Engine) options() map[string]any {
	options := map[string]any{"quantize": e.Quantize, "compile": e.Compile}
	if len(e.Compress) > 0 {
		options["compress"] = e.Compress
	}
	if len(e.Student) > 0 {
		options["student"] = e.Student
	}
	if e.From != "" {
		options["from"] = e.From
	}
	return options
}
