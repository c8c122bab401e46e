package run

import (
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// IsCompressed reports whether the engine was made from another function than the reference model.
func (m Recipe) IsCompressed() bool { return len(m.Compress)+len(m.Student) > 0 }

// Recipe is what provenance says of how an engine was compressed, quantized and compiled.
type Recipe struct {
	Student    []plan.File         `json:"student,omitempty"`
	Compressor *artifact.Toolchain `json:"compressor,omitempty"`
	Compress   []map[string]any    `json:"compress,omitempty"`
	Quantizer  *artifact.Toolchain `json:"quantizer,omitempty"`
	Quantize   map[string]any      `json:"quantize,omitempty"`
	Compile    map[string]any      `json:"compile,omitempty"`
	From       string              `json:"from,omitempty"` // what was compiled: [plan.FromSource]; empty for the ONNX reference
}

// Texts reads a list of texts out of JSON.
func Texts(value any) []string {
	switch list := value.(type) {
	case []string:
		return list
	case []any:
		var all []string
		for _, item := range list {
			if text, ok := item.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}
