// Package parity compares the outputs of an engine with those of the reference model for the
// same cases.
package parity

import (
	"context"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Run is the outputs to compare: two folders of safetensors shards with equal names and equal
// numbers of cases. The tensors have a leading case dimension.
type Run struct {
	Golden  string // folder of the reference model's outputs
	Engine  string // folder of the engine's outputs
	Shards  []artifact.Shard
	Outputs map[string]tensor.Options // by output: the tolerances that decide whether an element fails
	Copies  map[int]bool              // numbers of cases that have the inputs of another one: they count for no rate
	Masks   Masks
	Labels  Labels
	Groups  Groups
	// Detections are compared by overlap; the zero value is none.
	Detections accuracy.DetectionOutputs
	Limits     tensorfile.Limits // of memory
	// Open opens a file of outputs or of cases with masks, in place of one on disk; nil is [tensorfile.Open].
	Open func(path string, limits tensorfile.Limits) (*tensorfile.File, error)
}

// Labels says where the labels are. The zero Labels means no labels.
type Labels struct {
	Dir    string // folder of the cases
	Tensor string // name of the labels in each shard of the cases
	Output string // output that is compared with them
	// Detections are what is compared with them in place of an output; nil for an output.
	Detections *accuracy.Detections
	Shards     []artifact.Shard
	Metric     accuracy.Metric // the zero Metric is top1
	// Scores are those of a metric that a program computes, of all cases; nil for another metric.
	Scores *Scores
	// Probability says that the output has probabilities, and not scores of another scale.
	Probability bool
	Seed        uint64 // of bounds by a bootstrap
	// Slices is the tensor in each shard of the cases that says the slice of each case; empty for none.
	Slices string
}

// Scores are what a program gave to each case, for the outputs of both sides.
type Scores struct{ Reference, Engine []float64 }

// Result is the result of a comparison.
type Result struct {
	Cases    int
	Outputs  map[string]tensor.Result
	Accuracy *evidence.Accuracy // nil without labels
	Figures  *accuracy.Figures  // of Accuracy; nil for a rate of cases, and without labels
	Slices   []accuracy.Slice   // if the labels have any
	Each     percase.Figures    // of each case; those of Current are the caller's to add
}

// Compare reads both sides case by case. If an engine's outputs have another shape or class of
// dtype than the reference model's, the error is of kind tensor.ErrMismatch. A mask that does
// not fit its output gives CodeInvalid, which is not a mismatch of the engine.
func Compare(ctx context.Context, run Run) (Result, error) {
	comparisons := make(map[string]*tensor.Comparison, len(run.Outputs))
	fills, err := run.fills(ctx)
	if err != nil {
		return Result{}, err
	}
	for name, options := range run.Outputs {
		if found, ok := fills[name]; ok {
			options.Fill = found.Fill(options.Fills)
		}
		options.Keep = run.Groups.Shards != nil && run.Masks.Inputs[name] == "" && !slices.Contains(run.Detections.Names(), name)
		comparisons[name] = tensor.NewComparison(options)
	}
	answers := &scores{Counter: accuracy.NewCounter(run.Labels.Metric, run.Labels.Probability, run.Labels.Seed)}
	cases, found := 0, new(detected)
	for i, shard := range run.Shards {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if err := run.shard(i, shard, comparisons, answers, found); err != nil {
			return Result{}, err
		}
		cases += shard.Count
	}
	result := Result{Cases: cases, Outputs: make(map[string]tensor.Result, len(comparisons))}
	result.Each.Outputs = make(map[string][]tensor.CaseFigures, len(comparisons))
	for name, c := range comparisons {
		var err error
		result.Each.Outputs[name] = c.Each()
		if result.Outputs[name], err = run.result(c, name); err != nil {
			return Result{}, err
		}
	}
	found.into(run.Detections, result.Outputs)
	if err := run.group(comparisons, result.Outputs); err != nil {
		return Result{}, err
	}
	if run.Labels.Tensor != "" {
		figures := answers.Result()
		result.Accuracy, result.Figures = &figures, answers.Figures()
		result.Each.Accuracy, result.Each.Slices = answers.Columns(), answers.slices
		var err error
		if result.Slices, err = answers.Slices(answers.slices); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

func (run Run) open(dir, file string) (*tensorfile.File, error) {
	open := run.Open
	if open == nil {
		open = tensorfile.Open
	}
	return open(filepath.Join(dir, file), run.Limits)
}

func (run Run) shard(i int, shard artifact.Shard,
	comparisons map[string]*tensor.Comparison, answers *scores, found *detected) error {
	golden, err := run.open(run.Golden, shard.File)
	if err != nil {
		return err
	}
	defer golden.Close()
	candidate, err := run.open(run.Engine, shard.File)
	if err != nil {
		return err
	}
	defer candidate.Close()
	masks, err := run.masks(i)
	if err != nil {
		return err
	}
	if masks != nil {
		defer masks.Close()
	}
	for name, comparison := range comparisons {
		sides := sides{golden: golden, engine: candidate, masks: masks,
			output: name, mask: run.Masks.Inputs[name], first: shard.First, copies: run.Copies}
		for from := 0; from < shard.Count; from += rowsAtOnce {
			if err := sides.compare(comparison, from, min(from+rowsAtOnce, shard.Count)); err != nil {
				return err
			}
		}
	}
	if of := run.Detections; len(of.Names()) > 0 {
		if err := found.add(of, golden, candidate, shard.First, shard.Count, run.Copies); err != nil {
			return err
		}
	}
	if run.Labels.Tensor == "" {
		return nil
	}
	return run.Labels.score(i, golden, candidate, answers, run.distinct(shard))
}

// rowsAtOnce is how many cases of a tensor are in memory at a time.
const rowsAtOnce = 64

// sides is an output in the files of one shard.
type sides struct {
	golden, engine, masks *tensorfile.File
	output, mask          string // names of tensors; mask is "" for no mask
	first                 int    // number of the first case
	copies                map[int]bool
}

// compare adds the rows [from, to) to a comparison.
func (s sides) compare(c *tensor.Comparison, from, to int) error {
	want, err := s.golden.Rows(s.output, int64(from), int64(to))
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "golden output %s: %w", s.output, err)
	}
	got, err := s.engine.Rows(s.output, int64(from), int64(to))
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "engine output %s: %w", s.output, err)
	}
	var masks tensor.Tensor
	if s.mask != "" {
		if masks, err = s.masks.Rows(s.mask, int64(from), int64(to)); err != nil {
			return registry.Errorf(registry.CodeInvalid, "mask of output %s: %s", s.output, err.Error())
		}
	}
	for row := range int64(to - from) {
		if err := s.row(c, row, s.first+from+int(row), want, got, masks); err != nil {
			return err
		}
	}
	return nil
}

// row adds one case: a row of these tensors, with its case number.
func (s sides) row(c *tensor.Comparison, row int64, number int, want, got, masks tensor.Tensor) error {
	w, errWant := want.Rows(row, row+1)
	g, errGot := got.Rows(row, row+1)
	if errWant != nil || errGot != nil {
		return registry.Errorf(registry.CodeInternal, "output %s: case %d: %w", s.output, number, tensor.ErrMismatch)
	}
	// The comparison refuses a shape that differs from the reference model's.
	if s.mask != "" && slices.Equal(w.Shape, g.Shape) {
		t, err := masks.Rows(row, row+1)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid,
				"output %s: case %d: mask %s: %s", s.output, number, s.mask, err.Error())
		}
		m := newMask(t)
		if err := m.check(w.Shape); err != nil {
			return registry.Errorf(registry.CodeInvalid, "output %s: case %d: %w", s.output, number, err)
		}
		w, g = m.pick(w), m.pick(g)
	}
	add := c.Add
	if s.copies[number] {
		add = c.AddCopy
	}
	if err := add(number, w, g); err != nil {
		return registry.Errorf(registry.CodeInvalid, "output %s: case %d: %w", s.output, number, err)
	}
	return nil
}

// Figures converts a comparison to the figures of a report.
func Figures(dtype string, r tensor.Result) evidence.OutputFigures {
	figures := evidence.OutputFigures{
		DType:  dtype,
		MaxAbs: evidence.Figure(r.MaxAbs), MeanAbs: evidence.Figure(r.MeanAbs), MaxRel: evidence.Figure(r.MaxRel),
		CosineMin: evidence.Figure(r.CosineMin), SNRdB: evidence.Figure(r.SNR),
		Spread: evidence.Figure(r.Spread), SpreadSNRdB: evidence.Figure(r.SpreadSNR),
		MaxError: evidence.Figure(r.MaxError), CaseError: evidence.Figure(r.CaseError), Systematic: evidence.Figure(r.Systematic),
		CaseErrors: slices.Clone(r.CaseErrors[:]),
		NewNaN:     int(r.NewNaN), NewInf: int(r.NewInf),
	}
	if r.Float {
		figures.Identical = r.Identical
	}
	if o := r.Others; o != nil {
		figures.Others = &evidence.OtherChannels{Without: o.Without, SNRdB: evidence.Figure(o.SNR), MaxError: evidence.Figure(o.MaxError)}
	}
	if worst, ok := r.WorstClass(); ok {
		figures.Classes = &evidence.ClassCases{Class: worst.Class, Cases: worst.Cases, Lost: worst.Lost}
	}
	if q := r.Quarters; q != nil {
		figures.Quarters = &evidence.Quarters{}
		if q.Channel >= 0 {
			figures.Quarters.Channel = &q.Channel
		}
		for _, of := range q.All {
			figures.Quarters.Of = append(figures.Quarters.Of, evidence.Quarter{From: evidence.Figure(of.From), To: evidence.Figure(of.To),
				Relative: evidence.Figure(of.Relative), Error: evidence.Figure(of.Error)})
		}
	}
	if g := r.Groups; g != nil {
		figures.Groups = &evidence.Groups{By: append([]string{}, g.By...), Count: g.Count, Lost: g.Lost}
	}
	if r.Fill < tensor.NoFill {
		figures.Fill = evidence.Figure(r.Fill)
	}
	if r.Top1Rows > 0 {
		top1 := evidence.Figure(r.Top1)
		figures.Top1 = &top1
	}
	if w := r.Worst; w != nil {
		figures.Worst = &evidence.Worst{Case: w.Case, Index: w.Index,
			Reference: evidence.Figure(w.Reference), Engine: evidence.Figure(w.Engine)}
	}
	return figures
}
