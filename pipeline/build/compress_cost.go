package build

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// cost measures how far the model that a step left is from the reference model, on the calibration data, and adds the step to
// what is said of the engine.
func cost(ctx context.Context, m Maker, to run.Reporter, built *BuiltEngine, step CompressionStep, model []toolchain.Input, label string) (err error) {
	if built.compression.Calibration > 0 {
		what := label
		if step.Step != stepStudent {
			what = step.Step + " of " + label
		}
		done := to.Step("measure " + what)
		defer func() { done(step.note(), err) }()
		if err := measureStep(ctx, m, &step, model); err != nil {
			return registry.Errorf(registry.CodeOf(err), "measure %s on the calibration data: %w", what, err)
		}
	}
	built.compression.Steps = append(built.compression.Steps, step)
	return nil
}

func measureStep(ctx context.Context, m Maker, step *CompressionStep, model []toolchain.Input) error {
	want, err := baselineOutputs(ctx, m)
	if err != nil {
		return err
	}
	got, err := runOnCalibration(ctx, m, model)
	if err != nil {
		return err
	}
	run := parity.Run{Golden: want, Engine: got, Shards: m.Inputs.Calibration.Record.Shards, Outputs: make(map[string]tensor.Options)}
	for _, output := range m.Plan.Interface.Outputs {
		run.Outputs[output.Name] = tensor.Options{Fills: tensor.FillsEqual}
	}
	found, err := parity.Compare(ctx, run)
	if err != nil {
		return err
	}
	step.Outputs = make(map[string]evidence.OutputFigures)
	for _, output := range m.Plan.Interface.Outputs {
		figures := parity.Figures(string(output.DType), found.Outputs[output.Name])
		figures.Kind = string(output.Kind)
		step.Outputs[output.Name] = figures
	}
	step.Accuracy, err = calibrationAccuracy(m, want, got)
	return err
}

// baselineOutputs are those of the reference model, as ONNX: a source that was imported is compared with what it was imported
// to, as its engines are made of that.
func baselineOutputs(ctx context.Context, m Maker) (string, error) {
	m.Baseline.Lock()
	defer m.Baseline.Unlock()
	if m.Baseline.dir == "" {
		dir, err := runOnCalibration(ctx, m, m.Inputs.Model)
		if err != nil {
			return "", err
		}
		m.Baseline.dir = dir
	}
	return m.Baseline.dir, nil
}

// runOnCalibration runs a model as the reference model is run, and returns the folder of its outputs.
func runOnCalibration(ctx context.Context, m Maker, model []toolchain.Input) (string, error) {
	tool := m.Tools[run.OnnxRuntime]
	job := toolchain.Job{Verb: toolchain.VerbRun, Machine: run.Machine(m.Node), Inputs: slices.Clone(model), Run: &toolchain.RunOptions{
		Engines: []toolchain.RunEngine{{ID: run.ReferenceID, Path: model[0].Name}}, Threads: run.RunThreads, Level: tool.Profile.Level}}
	for _, shard := range m.Inputs.Calibration.Files {
		shard.Role = toolchain.RoleCases
		job.Inputs = append(job.Inputs, shard)
	}
	job.Budget = m.Budgets[tool.Identity.Name]
	dir, err := os.MkdirTemp(m.Scratch, "calibration-*")
	if err != nil {
		return "", err
	}
	_, err = tool.Engines.Do(ctx, job, filepath.Join(dir, "out"))
	return filepath.Join(dir, "out", "outputs", run.ReferenceID), err
}

// calibrationAccuracy is the metric of the spec on the calibration data, where that has labels; nil where it has none, and for the
// metric of a program, which sees the cases alone.
func calibrationAccuracy(m Maker, want, got string) (*evidence.Accuracy, error) {
	labels := m.Inputs.CalibrationLabels
	metric, output, ok, err := m.Plan.Interface.Accuracy(m.Plan.Limits.Accuracy)
	if err != nil || !ok || labels == "" || metric.Needs == accuracy.NeedsProgram {
		return nil, err
	}
	counter := accuracy.NewCounter(metric, output.Kind == validators.KindProbability, 0)
	by := m.Plan.Limits.Accuracy.DetectedBy()
	for i, shard := range m.Inputs.Calibration.Record.Shards {
		err := addOutputs(counter, filepath.Join(want, shard.File), filepath.Join(got, shard.File), output.Name, by, m.Inputs.Calibration.Files[i].Path, labels)
		if err != nil {
			return nil, m.Inputs.Calibration.InShard(registry.Errorf(registry.CodeInvalid, "labels %q of %s: %w", labels, shard.File, err), shard.File)
		}
	}
	result := counter.Result()
	return &result, nil
}

// note says what the step costs: "50.0 % of 9930 numbers are zero, SNR 18.2 dB, top1 97.8 % (reference 98.9 %)".
func (s CompressionStep) note() string {
	var parts []string
	if p, z := s.Parameters, s.Zeros; p != nil && p.After != p.Before {
		parts = append(parts, fmt.Sprintf("%d of %d numbers are left", p.After, p.Before))
	} else if p != nil && z != nil && p.After > 0 {
		parts = append(parts, fmt.Sprintf("%.1f %% of %d numbers are zero", 100*float64(z.After)/float64(p.After), p.After))
	}
	if n := len(s.Kept); n > 0 {
		parts = append(parts, registry.Count(n, "layer")+" as before")
	}
	least := math.Inf(1)
	for _, f := range s.Outputs {
		least = math.Min(least, float64(f.SpreadSNRdB))
	}
	if len(s.Outputs) > 0 {
		parts = append(parts, fmt.Sprintf("SNR %.1f dB", least))
	}
	if a := s.Accuracy; a != nil {
		parts = append(parts, fmt.Sprintf("%s %s (reference %s)", a.Metric, metricText(a.Metric, a.Engine), metricText(a.Metric, a.Reference)))
	}
	return strings.Join(parts, ", ")
}

// metricText writes a metric: in percent, where it is a share.
func metricText(metric string, value evidence.Figure) string {
	if m, err := accuracy.Find(metric); err == nil && !m.Loss {
		return fmt.Sprintf("%.2f %%", 100*float64(value))
	}
	return fmt.Sprintf("%.4g", float64(value))
}
