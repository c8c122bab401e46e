package pipeline

import (
	"context"
	"encoding/json"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// Compression is what was made of the model of an engine before it was compiled, and what each step costs. Costs are measured on
// the calibration data, which no verdict sees.
type Compression struct {
	// Calibration is how many cases the costs are measured on; 0: the spec has no calibration, and only sizes are known.
	Calibration int `json:"calibration"`
	// Labels is the tensor of the calibration data that accuracy is measured by; empty for none.
	Labels string            `json:"labels,omitempty"`
	Steps  []CompressionStep `json:"steps"`
}

// CompressionStep is a step, what it changed, and how far the outputs are from those of the reference model after it.
type CompressionStep struct {
	Step    string         `json:"step"` // "student", "prune 2:4", "low-rank", "quantize"
	Options map[string]any `json:"options,omitempty"`
	// Bytes are those of the model's files. Before is of the reference model for a student, else of what the step was given.
	Bytes BeforeAfter `json:"bytes"`
	// Parameters are the numbers of the model in floating point, and Zeros those of them that are zero. Nil where a step does not
	// count them.
	Parameters *BeforeAfter `json:"parameters,omitempty"`
	Zeros      *BeforeAfter `json:"zeros,omitempty"`
	// Kept are layers that the step left as they are, and why.
	Kept []KeptLayer `json:"kept,omitempty"`
	// Outputs are the outputs compared with those of the reference model, by name.
	Outputs  map[string]registry.OutputFigures `json:"outputs,omitempty"`
	Accuracy *registry.Accuracy                `json:"accuracy,omitempty"`
}

// BeforeAfter is a count before a step and after it.
type BeforeAfter struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// KeptLayer is a node that could not be compressed.
type KeptLayer struct {
	Node     string `json:"node"`
	Operator string `json:"operator"`
	Why      string `json:"why"`
}

// stepStudent is the step of a variant with a model of its own.
const stepStudent = "student"

// compressor is the toolchain that does the steps of a variant; empty where there are none.
func compressor(v spec.Variant) string {
	if len(v.Compress) == 0 {
		return ""
	}
	return onnxRuntime
}

// compressOptions are the driver's words for the steps of a variant.
func compressOptions(v spec.Variant) []map[string]any {
	var all []map[string]any
	for _, s := range v.Compress {
		options := map[string]any{"method": s.Method}
		if s.Pattern != "" {
			options["pattern"] = s.Pattern
		}
		if s.Amount != nil {
			options["amount"] = float64(*s.Amount)
		}
		if s.Energy != nil {
			options["energy"] = float64(*s.Energy)
		}
		if s.Rank != nil {
			options["rank"] = *s.Rank
		}
		if len(s.Nodes) > 0 {
			options["nodes"] = s.Nodes
		}
		if len(s.Exclude) > 0 {
			options["exclude"] = s.Exclude
		}
		all = append(all, options)
	}
	return all
}

// checkCompressible refuses steps for a model that has nothing they change.
func checkCompressible(s *spec.Spec, v spec.Variant, file string, m *format.Model) error {
	if len(v.Compress) == 0 || slices.ContainsFunc([]string{"Conv", "ConvTranspose", "Gemm", "MatMul"},
		func(op string) bool { return m.Ops[format.DefaultDomain+"."+op] > 0 }) {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid,
		"%s: variant %s: compress: %s has no convolution and no matrix product, and only their weights are compressed: leave compress out",
		s.File, v.Name, file)
}

// compress does the steps of an engine that come before quantization, and says what each costs. It returns the model that they
// leave.
func (m maker) compress(ctx context.Context, to reporter, built *builtEngine, label string) ([]toolchain.Input, error) {
	planned, model := built.planned, m.inputs.modelInputs(built.planned.Variant)
	if len(planned.Compress)+len(planned.Student) == 0 {
		return model, nil
	}
	built.compression = &Compression{}
	if m.inputs.Calibration.Record.Count > 0 {
		built.compression.Calibration, built.compression.Labels = m.inputs.Calibration.Record.Count, m.inputs.calibrationLabels
	}
	if len(planned.Student) > 0 {
		step := CompressionStep{Step: stepStudent, Bytes: BeforeAfter{sizeOfInputs(m.inputs.Model), sizeOfInputs(model)}}
		if err := m.cost(ctx, to, built, step, model, label); err != nil {
			return nil, err
		}
	}
	for _, options := range planned.Compress {
		name := stepName(options)
		job := toolchain.Job{Verb: toolchain.VerbCompress, Inputs: model, Options: options, Machine: machine(m.node)}
		taken, err := m.do(ctx, to, m.tools[planned.Compressor.Name].Quantizer, wanted{name: name + " of " + label, job: job, options: options})
		if err != nil {
			return nil, err
		}
		built.steps = append(built.steps, taken)
		step := CompressionStep{Step: name, Options: options}
		if err := json.Unmarshal(taken.outcome.Result, &step); err != nil {
			return nil, registry.Errorf(registry.CodeInternal, "result of compress: %w", err)
		}
		before := sizeOfInputs(model)
		if model, _, err = outcomeModel(taken.outcome, nil); err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "%s of %s: %w", name, label, err)
		}
		step.Step, step.Options, step.Bytes = name, options, BeforeAfter{before, sizeOfInputs(model)}
		if err := m.cost(ctx, to, built, step, model, label); err != nil {
			return nil, err
		}
	}
	return model, nil
}

// stepName is a step in messages: "prune 2:4", "low-rank".
func stepName(options map[string]any) string {
	method, _ := options["method"].(string)
	pattern, _ := options["pattern"].(string)
	return spec.Compress{Method: method, Pattern: pattern}.String()
}

// sizeOfInputs is what files take, in bytes.
func sizeOfInputs(files []toolchain.Input) int64 {
	var n int64
	for _, f := range files {
		n += f.Size
	}
	return n
}

// isCompressed reports whether the engine was made from another function than the reference model.
func (m howMade) isCompressed() bool { return len(m.Compress)+len(m.Student) > 0 }

// madeOf is how an engine is made, for provenance.
func madeOf(e plan.Engine) howMade {
	return howMade{Student: e.Student, Compressor: e.Compressor, Compress: e.Compress, Quantizer: e.Quantizer, Quantize: e.Quantize, Compile: e.Compile,
		From: e.From}
}
