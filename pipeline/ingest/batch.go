package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// withBatch takes the unnamed leading dimensions of an ONNX file for one batch, unless the spec has sizes for one of them by its place.
func withBatch(s *spec.Spec, model *onnx.Model, iface validators.Interface) (_ validators.Interface, unnamed []string) {
	if s.Source.Format != spec.FormatONNX {
		return iface, nil
	}
	together, unnamed := run.WithBatch(model, iface)
	declared := s.Shapes.Dims()
	if slices.ContainsFunc(unnamed, func(symbol string) bool { _, ok := declared[symbol]; return ok }) {
		return iface, nil
	}
	return together, unnamed
}

// noBatch takes the leading dimensions for separate ones again. Each keeps the sizes of the batch.
func (in *Inputs) noBatch() {
	dims := maps.Clone(in.Interface.Dims)
	for side, tensors := range map[*[]validators.TensorInfo][]validators.TensorInfo{
		&in.Interface.Inputs: in.batch.apart.Inputs, &in.Interface.Outputs: in.batch.apart.Outputs,
	} {
		*side = slices.Clone(*side)
		for i, t := range tensors {
			if len(t.Shape) > 0 && slices.Contains(in.batch.unnamed, t.Shape[0].Symbol) {
				dims[t.Shape[0].Symbol] = dims[(*side)[i].Shape[0].Symbol]
			}
			(*side)[i].Shape = t.Shape
		}
	}
	in.Interface.Dims = dims
	symbols := in.Interface.Symbols()
	maps.DeleteFunc(in.Interface.Dims, func(symbol string, _ validators.DimRange) bool { return !slices.Contains(symbols, symbol) })
	in.batch = nil
}

// Bounds on the cases that are put together.
const (
	triedTogether = 8
	triedBytes    = 64 << 20
)

// The files of a trial: the same cases one by one, and as one batch.
const (
	triedApart = "batch-apart.safetensors"
	triedBatch = "batch-together.safetensors"
)

// TryBatch runs the model on a few cases one by one and as one batch. If the batch has the outputs of its cases, row by row, the leading
// dimensions that the graph does not name are one batch; else they stay separate, with a note. Errors: those of ctx, and of files.
func (in *Inputs) TryBatch(ctx context.Context, env *run.Env, w run.Worker, engines toolchain.Driver) error {
	if in.batch == nil || engines == nil {
		return nil
	}
	job, err := in.batchJob(w.Scratch)
	if err != nil {
		return err
	}
	node, err := env.Node(ctx, nil)
	if err != nil {
		return err
	}
	job.Machine = run.Machine(node)
	task := run.Task{Name: "try several cases as one batch", Job: job}
	step, err := w.Do(ctx, env.Report(), engines, task)
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		tolerance := goldenset.ToleranceOf(in.Quantized != "", in.Imported.Model)
		err = sameRows(step.Outcome, tolerance)
	}
	if err != nil {
		in.Notes = append(in.Notes, fmt.Sprintf("the model leaves leading dimensions without a name, and they are no batch, so batches are not checked: %v", err))
		in.noBatch()
	}
	return nil
}

// batchJob runs the model on both files.
func (in *Inputs) batchJob(scratch string) (toolchain.Job, error) {
	dir, err := os.MkdirTemp(scratch, "batch-*")
	if err != nil {
		return toolchain.Job{}, err
	}
	job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: slices.Concat(in.Model, in.Operators),
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: run.ReferenceID, Path: in.Model[0].Name}}, Threads: run.RunThreads}}
	for _, library := range in.Operators {
		job.Run.Engines[0].Operators = append(job.Run.Engines[0].Operators, library.Name)
	}
	apart, together, err := in.stackedCases()
	if err != nil {
		return toolchain.Job{}, err
	}
	for _, tried := range []struct {
		name    string
		tensors map[string]tensor.Tensor
	}{{triedApart, apart}, {triedBatch, together}} {
		file := filepath.Join(dir, tried.name)
		if err := cases.WriteShard(file, tried.tensors); err != nil {
			return toolchain.Job{}, err
		}
		input, err := toolchain.FileInput(toolchain.RoleCases, tried.name, file)
		if err != nil {
			return toolchain.Job{}, err
		}
		job.Inputs = append(job.Inputs, input)
	}
	return job, nil
}

// stackedCases are the first cases of the first file, one by one and along their leading dimension. One case is taken twice.
func (in *Inputs) stackedCases() (apart, together map[string]tensor.Tensor, err error) {
	f, err := tensorfile.Open(in.Cases.Files[0].Path, tensorfile.Limits{})
	if err != nil {
		return nil, nil, cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	apart, together = make(map[string]tensor.Tensor), make(map[string]tensor.Tensor)
	count := int64(in.Cases.Record.Shards[0].Count)
	rows := max(1, min(count, triedTogether, triedBytes*count/max(in.Cases.Files[0].Size, 1)))
	for _, input := range in.Interface.Inputs {
		t, err := f.Rows(input.Name, 0, rows)
		if err == nil && rows == 1 {
			t, err = tensor.Concat(t, t)
		}
		if err != nil {
			return nil, nil, cases.TensorError(err)
		}
		if _, extra := input.Stored(); len(t.Shape) == len(input.Shape)+extra { // the cases are the batch
			t.Shape = slices.Insert(slices.Clone(t.Shape), 1, 1)
		}
		apart[input.Name] = t
		t.Shape = append([]int64{1, t.Shape[0] * t.Shape[1]}, t.Shape[2:]...)
		together[input.Name] = t
	}
	return apart, together, nil
}

// sameRows checks that the outputs of the batch are those of its cases.
func sameRows(outcome toolchain.Outcome, allowed goldenset.Tolerance) error {
	var files []string
	for _, name := range []string{triedApart, triedBatch} {
		file, ok := outcome.File("outputs/" + run.ReferenceID + "/" + name)
		if !ok {
			return registry.Errorf(registry.CodeInternal, "the run left no outputs of %s", name)
		}
		files = append(files, file.Path)
	}
	f, err := tensorfile.Open(files[0], tensorfile.Limits{})
	if err != nil {
		return cases.TensorError(err)
	}
	names := f.Names()
	if err := f.Close(); err != nil {
		return err
	}
	for _, name := range names {
		apart, err := goldenset.ReadTensor(files[0], name)
		if err != nil {
			return err
		}
		batch, err := goldenset.ReadTensor(files[1], name)
		if err != nil {
			return err
		}
		if len(apart.Shape) < 2 || len(batch.Shape) < 2 {
			return fmt.Errorf("output %q has no leading dimension", name)
		}
		want := append([]int64{1, apart.Shape[0] * apart.Shape[1]}, apart.Shape[2:]...)
		if !slices.Equal(want, batch.Shape) {
			return fmt.Errorf("output %q of %s has the shape %v, and in one batch %v", name,
				registry.Count(int(apart.Shape[0]), "case"), apart.Shape, batch.Shape[1:])
		}
		apart.Shape = want
		options := allowed.Options(apart.DType, span(apart))
		comparison := tensor.NewComparison(options)
		if err := comparison.Add(0, apart, batch); err != nil {
			return err
		}
		if r := comparison.Result(); r.Failed > 0 {
			return fmt.Errorf("output %q: %d of %d values are others in a batch", name, r.Failed, r.Elements)
		}
	}
	return nil
}

// span is the range of the finite values of a tensor.
func span(t tensor.Tensor) float64 {
	values := slices.DeleteFunc(t.Float64s(), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values) - slices.Min(values)
}
