package pipeline

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// baseline is the outputs of the reference model on the calibration data, which engines that are compressed share.
type baseline struct {
	sync.Mutex
	dir string // that has them; empty while they are not known
}

// cost measures how far the model that a step left is from the reference model, on the calibration data, and adds the step to
// what is said of the engine.
func (m maker) cost(ctx context.Context, to reporter, built *builtEngine, step CompressionStep, model []toolchain.Input, label string) (err error) {
	if built.compression.Calibration > 0 {
		what := label
		if step.Step != stepStudent {
			what = step.Step + " of " + label
		}
		done := to.step("measure " + what)
		defer func() { done(step.note(), err) }()
		if err := m.measureStep(ctx, &step, model); err != nil {
			return registry.Errorf(registry.CodeOf(err), "measure %s on the calibration data: %w", what, err)
		}
	}
	built.compression.Steps = append(built.compression.Steps, step)
	return nil
}

func (m maker) measureStep(ctx context.Context, step *CompressionStep, model []toolchain.Input) error {
	want, err := m.baselineOutputs(ctx)
	if err != nil {
		return err
	}
	got, err := m.runOnCalibration(ctx, model)
	if err != nil {
		return err
	}
	run := parity.Run{Golden: want, Engine: got, Shards: m.inputs.Calibration.Record.Shards, Outputs: make(map[string]tensor.Options)}
	for _, output := range m.plan.Interface.Outputs {
		run.Outputs[output.Name] = tensor.Options{Fills: tensor.FillsEqual}
	}
	found, err := parity.Compare(ctx, run)
	if err != nil {
		return err
	}
	step.Outputs = make(map[string]registry.OutputFigures)
	for _, output := range m.plan.Interface.Outputs {
		figures := parity.Figures(string(output.DType), found.Outputs[output.Name])
		figures.Kind = string(output.Kind)
		step.Outputs[output.Name] = figures
	}
	step.Accuracy, err = m.calibrationAccuracy(want, got)
	return err
}

// baselineOutputs are those of the reference model, as ONNX: a source that was imported is compared with what it was imported
// to, as its engines are made of that.
func (m maker) baselineOutputs(ctx context.Context) (string, error) {
	m.baseline.Lock()
	defer m.baseline.Unlock()
	if m.baseline.dir == "" {
		dir, err := m.runOnCalibration(ctx, m.inputs.Model)
		if err != nil {
			return "", err
		}
		m.baseline.dir = dir
	}
	return m.baseline.dir, nil
}

// runOnCalibration runs a model as the reference model is run, and returns the folder of its outputs.
func (m maker) runOnCalibration(ctx context.Context, model []toolchain.Input) (string, error) {
	tool := m.tools[onnxRuntime]
	job := toolchain.Job{Verb: toolchain.VerbRun, Machine: machine(m.node), Inputs: slices.Clone(model), Run: &toolchain.RunOptions{
		Engines: []toolchain.RunEngine{{ID: referenceID, Path: model[0].Name}}, Threads: runThreads, Level: tool.Profile.Level}}
	for _, shard := range m.inputs.Calibration.Files {
		shard.Role = toolchain.RoleCases
		job.Inputs = append(job.Inputs, shard)
	}
	job.Budget = m.budgets[tool.identity.Name]
	dir, err := os.MkdirTemp(m.scratch, "calibration-*")
	if err != nil {
		return "", err
	}
	_, err = tool.Engines.Do(ctx, job, filepath.Join(dir, "out"))
	return filepath.Join(dir, "out", "outputs", referenceID), err
}

// calibrationAccuracy is the metric of the spec on the calibration data, where that has labels; nil where it has none, and for the
// metric of a program, which sees the cases alone.
func (m maker) calibrationAccuracy(want, got string) (*registry.Accuracy, error) {
	labels := m.inputs.calibrationLabels
	metric, output, ok, err := m.plan.Interface.Accuracy(m.plan.Limits.Accuracy)
	if err != nil || !ok || labels == "" || metric.Needs == accuracy.NeedsProgram {
		return nil, err
	}
	counter := accuracy.NewCounter(metric, output.Kind == validators.KindProbability, 0)
	by := m.plan.Limits.Accuracy.DetectedBy()
	for i, shard := range m.inputs.Calibration.Record.Shards {
		err := addOutputs(counter, filepath.Join(want, shard.File), filepath.Join(got, shard.File), output.Name, by, m.inputs.Calibration.Files[i].Path, labels)
		if err != nil {
			return nil, m.inputs.Calibration.NamedIn(registry.Errorf(registry.CodeInvalid, "labels %q of %s: %w", labels, shard.File, err))
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
func metricText(metric string, value registry.Figure) string {
	if m, err := accuracy.Find(metric); err == nil && !m.Loss {
		return fmt.Sprintf("%.2f %%", 100*float64(value))
	}
	return fmt.Sprintf("%.4g", float64(value))
}
