package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// tolerance is how far an output may be from the right one, as a share of the largest right value: engines may compute in half
// precision.
const tolerance = 0.01

// order runs the cases in reverse. A program that keeps something of one case for the next computes others then.
func order(ctx context.Context, s *session) error {
	back, err := s.changed(reversed)
	if err != nil {
		return err
	}
	want, err := s.outputs(ctx, s.Cases)
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, back)
	if err != nil {
		return err
	}
	if name := different(want, reversed(got)); name != "" {
		return fmt.Errorf("output %s of the cases in reverse order differs from that of the same cases in order", name)
	}
	return nil
}

// reversed returns tensors with their cases in reverse order.
func reversed(tensors map[string]tensor.Tensor) map[string]tensor.Tensor {
	back := make(map[string]tensor.Tensor, len(tensors))
	for name, v := range tensors {
		cases := 1
		if len(v.Shape) > 0 && v.Shape[0] > 0 {
			cases = int(v.Shape[0])
		}
		rows := slices.Collect(slices.Chunk(v.Data, max(len(v.Data)/cases, 1)))
		slices.Reverse(rows)
		v.Data = slices.Concat(rows...)
		back[name] = v
	}
	return back
}

// different names an output that has other bytes, or "".
func different(want, got map[string]tensor.Tensor) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(want[name].Data, got[name].Data) {
			return name
		}
	}
	return ""
}

const otherID = "other"

// engines runs the engines of two models in turns. A program that keeps one engine for all, or that recognises the cases, has the
// outputs of one for both.
func engines(ctx context.Context, s *session) error {
	if s.Other == "" {
		return Skipped("there is no other model for it")
	}
	first, err := s.made(ctx)
	if err != nil {
		return err
	}
	second, err := s.compile(ctx, s.Other)
	if err != nil {
		return err
	}
	want := make(map[string]map[string]tensor.Tensor)
	for id, engine := range map[string]toolchain.Outcome{engineID: first, otherID: second} {
		alone, err := s.outputsOf(ctx, s.Cases, map[string]toolchain.Outcome{id: engine})
		if err != nil {
			return err
		}
		want[id] = alone[id]
	}
	if different(want[engineID], want[otherID]) == "" {
		return errors.New("the engines of two models with other weights have the same outputs")
	}
	got, err := s.outputsOf(ctx, s.Cases, map[string]toolchain.Outcome{engineID: first, otherID: second})
	if err != nil {
		return err
	}
	for _, id := range []string{engineID, otherID} {
		if name := different(want[id], got[id]); name != "" {
			return fmt.Errorf("output %s of an engine differs if another engine takes turns with it", name)
		}
	}
	return nil
}

func right(ctx context.Context, s *session) error {
	return s.rightOn(ctx, s.Cases, func(shape []int64) []int64 { return shape })
}

// batches runs the cases as batches of two. An engine may refuse them.
func batches(ctx context.Context, s *session) error {
	twos := func(shape []int64) []int64 { return append([]int64{shape[0] / 2, 2}, shape[1:]...) }
	pairs, err := s.changed(shaped(twos))
	if err != nil {
		return err
	}
	if err = s.rightOn(ctx, pairs, twos); registry.HasCode(err, registry.CodeInvalid) {
		return Skipped(fmt.Sprintf("the engine takes no batches of two: %v", err)) // as engines of fixed sizes do
	}
	return err
}

// rightOn compares the outputs of cases with the right ones, in the shape that the cases were given.
func (s *session) rightOn(ctx context.Context, cases string, shape func([]int64) []int64) error {
	if s.Want == "" {
		return Skipped("the right outputs of this model are not known")
	}
	want, err := tensorfile.ReadFile(s.Want, tensorfile.Limits{})
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, cases)
	if err != nil {
		return err
	}
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			return fmt.Errorf("there is no output %s: there are %v", name, slices.Sorted(maps.Keys(got)))
		}
		if wanted := shape(w.Shape); g.DType != w.DType || !slices.Equal(g.Shape, wanted) {
			return fmt.Errorf("output %s is %s %v, want %s %v", name, g.DType, g.Shape, w.DType, wanted)
		}
		values, wanted := g.Float64s(), w.Float64s()
		largest := 0.0
		for _, v := range wanted {
			largest = max(largest, math.Abs(v))
		}
		for i := range wanted {
			if !(math.Abs(values[i]-wanted[i]) <= tolerance*largest) {
				return fmt.Errorf("output %s: element %d of %v is %v, want %v", name, i, w.Shape, values[i], wanted[i])
			}
		}
	}
	return nil
}

func repeat(ctx context.Context, s *session) error {
	job, err := s.runJob(ctx, s.Cases)
	if err != nil {
		return err
	}
	first, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	second, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	if !maps.Equal(digests(first), digests(second)) {
		return fmt.Errorf("two processes computed %v and %v from the same bytes", digests(first), digests(second))
	}
	return nil
}

func batch(ctx context.Context, s *session) error {
	each, err := s.changed(shaped(func(shape []int64) []int64 { return slices.Insert(slices.Clone(shape), 1, 1) }))
	if err != nil {
		return err
	}
	want, err := s.outputs(ctx, s.Cases)
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, each)
	if err != nil {
		return err
	}
	for name, w := range want {
		if g := got[name]; !bytes.Equal(g.Data, w.Data) {
			return fmt.Errorf("output %s %v of cases with a batch dimension of their own differs from %v of the same cases without", name, g.Shape, w.Shape)
		}
	}
	return nil
}

// changed writes the cases as change returns them.
func (s *session) changed(change func(map[string]tensor.Tensor) map[string]tensor.Tensor) (path string, err error) {
	tensors, err := tensorfile.ReadFile(s.Cases, tensorfile.Limits{})
	if err != nil {
		return "", err
	}
	path = filepath.Join(s.dir, "changed.safetensors")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(tensorfile.Write(f, change(tensors), nil), f.Close())
}

// shaped returns a change that gives tensors other shapes.
func shaped(shape func([]int64) []int64) func(map[string]tensor.Tensor) map[string]tensor.Tensor {
	return func(tensors map[string]tensor.Tensor) map[string]tensor.Tensor {
		for name, v := range tensors {
			v.Shape = shape(v.Shape)
			tensors[name] = v
		}
		return tensors
	}
}
