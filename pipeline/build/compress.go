package build

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// compress does the steps of an engine that come before quantization, and says what each costs. It returns the model that they
// leave.
func compress(ctx context.Context, m Maker, to run.Reporter, built *BuiltEngine, label string) ([]toolchain.Input, error) {
	planned, model := built.planned, m.Inputs.ModelInputs(built.planned.Variant)
	if len(planned.Compress)+len(planned.Student) == 0 {
		return model, nil
	}
	built.compression = &Compression{}
	if m.Inputs.Calibration.Record.Count > 0 {
		built.compression.Calibration, built.compression.Labels = m.Inputs.Calibration.Record.Count, m.Inputs.CalibrationLabels
	}
	if len(planned.Student) > 0 {
		step := CompressionStep{Step: stepStudent, Bytes: BeforeAfter{run.SizeOf(m.Inputs.Model), run.SizeOf(model)}}
		if err := cost(ctx, m, to, built, step, model, label); err != nil {
			return nil, err
		}
	}
	for _, options := range planned.Compress {
		name := stepName(options)
		job := toolchain.Job{Verb: toolchain.VerbCompress, Inputs: model, Options: options, Machine: run.Machine(m.Node)}
		taken, err := m.Do(ctx, to, m.Tools[planned.Compressor.Name].Quantizer, run.Task{Name: name + " of " + label, Job: job, Options: options})
		if err != nil {
			return nil, err
		}
		built.steps = append(built.steps, taken)
		step := CompressionStep{Step: name, Options: options}
		if err := json.Unmarshal(taken.Outcome.Result, &step); err != nil {
			return nil, registry.Errorf(registry.CodeInternal, "result of compress: %w", err)
		}
		before := run.SizeOf(model)
		if model, _, err = ingest.OutcomeModel(taken.Outcome, nil); err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "%s of %s: %w", name, label, err)
		}
		step.Step, step.Options, step.Bytes = name, options, BeforeAfter{before, run.SizeOf(model)}
		if err := cost(ctx, m, to, built, step, model, label); err != nil {
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

// madeOf is how an engine is made, for provenance.
func madeOf(e plan.Engine) run.Recipe {
	return run.Recipe{Student: e.Student, Compressor: e.Compressor, Compress: e.Compress, Quantizer: e.Quantizer, Quantize: e.Quantize, Compile: e.Compile,
		From: e.From}
}
