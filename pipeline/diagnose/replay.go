package diagnose

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// ReplayOptions say what Replay runs.
type ReplayOptions struct {
	Engine string // label, target, variant or digest
	// Case is the number of the case; ignored with Inputs.
	Case int
	// Inputs is a case in place of one of the release, by the names of the model's inputs, as [Replayed.Inputs] had it;
	// nil for none.
	Inputs map[string]tensor.Tensor
	// Report is the report that the case is from; nil if there is none. Figures relative to the spread of an output
	// take that from it, since a single case has another one.
	Report *evidence.ParityReport
}

// Replayed is what a case came to.
type Replayed struct {
	Ref     registry.Ref       `json:"-"`
	Engine  string             `json:"engine"` // label
	Digest  registry.Digest    `json:"digest"`
	Runtime artifact.Toolchain `json:"runtime"`        // name and version of what ran the engine
	Case    *int               `json:"case,omitempty"` // absent for a saved case
	Inputs  []TensorSummary    `json:"inputs"`
	Outputs []ReplayedOutput   `json:"outputs"`

	// Given and Computed are the tensors: inputs, outputs of the reference model, and outputs of the engine. Each has a
	// leading dimension of one case.
	Given               map[string]tensor.Tensor `json:"-"`
	Reference, Computed map[string]tensor.Tensor `json:"-"`
}

// TensorSummary describes the values of a tensor.
type TensorSummary struct {
	Name   string          `json:"name"`
	DType  string          `json:"dtype"`
	Shape  []int64         `json:"shape"`
	Min    evidence.Figure `json:"min"` // of the finite values; NaN if there is none
	Max    evidence.Figure `json:"max"`
	Mean   evidence.Figure `json:"mean"`
	Spread evidence.Figure `json:"spread"`           // standard deviation
	Others int             `json:"others,omitempty"` // values that are NaN or infinite
}

// ReplayedOutput is an output of the engine beside the reference model's.
type ReplayedOutput struct {
	Name      string          `json:"name"`
	Reference TensorSummary   `json:"reference"`
	Engine    TensorSummary   `json:"engine"`
	SNRdB     evidence.Figure `json:"snrDb"`
	MaxAbs    evidence.Figure `json:"maxAbs"`
	// Problem is why the outputs cannot be compared, such as another shape; the figures are NaN then.
	Problem string `json:"problem,omitempty"`
	// Worst is the element that differs most, and Reported what the report says of its worst element, if that is
	// in this case.
	Worst    *evidence.Worst  `json:"worst,omitempty"`
	Reported *evidence.Worst  `json:"reported,omitempty"`
	Checks   []evidence.Check `json:"checks"` // the limits that a single case can exceed
}

// Replay runs one case on an engine and on the reference model, and holds the engine to its limits. Nothing is
// attached. Errors: those of oneEngine; CodeInvalid for a case that the release does not have, or inputs that
// the model does not take.
func Replay(ctx context.Context, env *run.Env, ref registry.Ref, o ReplayOptions) (Replayed, error) {
	temp, err := tempdir.New("replay")
	if err != nil {
		return Replayed{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	v, c, err := verify.Open(ctx, env, ref, o.Engine, scratch)
	if err != nil {
		return Replayed{}, err
	}
	found := Replayed{
		Ref:    registry.Ref{Environment: v.Environment, Model: v.Release.Model, Tag: v.Release.Tag(), Digest: v.Release.Digest},
		Engine: c.Engine.Label(), Digest: c.Engine.Digest, Runtime: artifact.Toolchain{Name: c.Tool.Runtime.Name, Version: c.Tool.Runtime.Version},
	}
	b := &bisector{v: v, c: c}
	if o.Inputs == nil {
		found.Case = &o.Case
		b.cases, err = caseInputs(v, []int{o.Case}, filepath.Join(scratch, "one"))
	} else {
		b.cases, err = givenCase(o.Inputs, filepath.Join(scratch, "one"))
	}
	if err != nil {
		return Replayed{}, err
	}
	if err := b.replay(ctx, &found); err != nil {
		return Replayed{}, err
	}
	found.summarize(v, c, o.Report)
	return found, nil
}

// givenCase writes a case that is none of the release.
func givenCase(inputs map[string]tensor.Tensor, dir string) ([]caseInput, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	to := filepath.Join(dir, caseName(0))
	if err := cases.WriteShard(to, inputs); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the inputs of the case: %s", err.Error())
	}
	in, err := caseFile(0, to)
	return []caseInput{in}, err
}

// replay runs the case, and reads what there is in and out.
func (b *bisector) replay(ctx context.Context, found *Replayed) (err error) {
	ctx, done := b.v.Env.Report().StepIn(ctx, "run the case on "+found.Engine+" and on the reference model")
	defer func() { done("", err) }()
	var names []string
	for _, output := range b.v.Iface.Outputs {
		names = append(names, output.Name)
	}
	wants, err := b.runReference(ctx, b.v.ReferenceModel, names)
	if err != nil {
		return err
	}
	gots, err := b.runEngine(ctx, b.c.Model, names)
	if err != nil {
		return err
	}
	one := b.cases[0].input
	if found.Given, err = allTensors(one.Path); err == nil {
		found.Reference, err = allTensors(filepath.Join(wants, one.Name))
	}
	if err == nil {
		found.Computed, err = allTensors(filepath.Join(gots, one.Name))
	}
	if err != nil {
		return err
	}
	for name := range found.Given { // labels and slices are no inputs
		if !slices.ContainsFunc(b.v.Iface.Inputs, func(t validators.TensorInfo) bool { return t.Name == name }) {
			delete(found.Given, name)
		}
	}
	return nil
}

func allTensors(path string) (_ map[string]tensor.Tensor, err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return nil, cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		if all[name], err = f.Tensor(name); err != nil {
			return nil, cases.TensorError(err)
		}
	}
	return all, nil
}

// summarize compares the outputs, and holds them to the limits.
func (r *Replayed) summarize(v verify.Session, c run.Candidate, report *evidence.ParityReport) {
	for _, input := range v.Iface.Inputs {
		if t, ok := r.Given[input.Name]; ok {
			r.Inputs = append(r.Inputs, summaryOf(input.Name, t))
		}
	}
	results := make(map[string]tensor.Result)
	for _, output := range v.Iface.Outputs {
		limits, _ := v.Limits.For(c.Engine.Precision, output.Name)
		options := limits.Comparison(output)
		var reported evidence.OutputFigures
		if report != nil {
			reported = report.Outputs[output.Name]
		}
		options.Fill = float64(reported.Fill)
		if reported.Spread > 0 && !options.Channels {
			options.Spreads = []float64{float64(reported.Spread)}
		}
		compared := tensor.NewComparison(options)
		want, got := r.Reference[output.Name], r.Computed[output.Name]
		shown := ReplayedOutput{Name: output.Name, Reference: summaryOf(output.Name, want), Engine: summaryOf(output.Name, got),
			Checks: []evidence.Check{}}
		if err := compared.Add(0, want, got); err != nil {
			shown.SNRdB, shown.MaxAbs, shown.Problem = evidence.Figure(math.NaN()), evidence.Figure(math.NaN()), registry.PlainText(err.Error())
		} else {
			result := compared.Result()
			results[output.Name] = result
			shown.SNRdB, shown.MaxAbs = evidence.Figure(result.SpreadSNR), evidence.Figure(result.MaxAbs)
			if w := result.Worst; w != nil {
				shown.Worst = &evidence.Worst{Index: w.Index[min(1, len(w.Index)):], Reference: evidence.Figure(w.Reference),
					Engine: evidence.Figure(w.Engine)}
			}
		}
		if w := reported.Worst; w != nil && r.Case != nil && w.Case == *r.Case {
			shown.Reported = &evidence.Worst{Case: w.Case, Index: inCase(w.Index, shown.Engine.Shape), Reference: w.Reference, Engine: w.Engine}
		}
		r.Outputs = append(r.Outputs, shown)
	}
	for _, check := range v.Limits.CheckOne(c.Engine.Precision, results) {
		for i, output := range r.Outputs {
			if output.Name == check.Output {
				r.Outputs[i].Checks = append(r.Outputs[i].Checks, check)
			}
		}
	}
}

// inCase is an index in the output of one case, without the batch of one that a report may have counted.
func inCase(index, shape []int64) []int64 {
	if len(index) == len(shape) && len(shape) > 0 && shape[0] == 1 {
		return index[1:]
	}
	return index
}

// summaryOf describes a tensor.
func summaryOf(name string, t tensor.Tensor) TensorSummary {
	s := TensorSummary{Name: name, DType: string(t.DType), Shape: append([]int64{}, t.Shape...)}
	least, most, sum, square, n := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0.0
	for i := range t.Len() {
		v := t.Float64(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s.Others++
			continue
		}
		least, most, sum, square, n = math.Min(least, v), math.Max(most, v), sum+v, square+v*v, n+1
	}
	mean := sum / n // NaN where there are none
	if n == 0 {
		least, most = math.NaN(), math.NaN()
	}
	s.Min, s.Max, s.Mean = evidence.Figure(least), evidence.Figure(most), evidence.Figure(mean)
	s.Spread = evidence.Figure(math.Sqrt(math.Max(square/n-mean*mean, 0)))
	return s
}

// WorstCase returns the case that a report is worst in: the one of a limit that failed, else the one with the element that
// differs most in the output with the lowest ratio of signal to noise. ok is false if no case differs.
func WorstCase(report evidence.ParityReport) (number int, ok bool) {
	for _, check := range report.Checks.OfCases() {
		if check.Verdict == evidence.VerdictFail && check.Case != nil {
			return *check.Case, true
		}
	}
	worst := math.Inf(1)
	for _, name := range slices.Sorted(maps.Keys(report.Outputs)) {
		o := report.Outputs[name]
		if snr := float64(o.SNRdB); o.Worst != nil && (!ok || snr < worst) {
			number, worst, ok = o.Worst.Case, snr, true
		}
	}
	return number, ok
}
