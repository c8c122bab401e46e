package caserun_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

func ints(shape []int64, values ...int64) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.Int64, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(v))
	}
	return t
}

// count returns a tensor of this shape with the numbers from first on.
func count(first int64, shape ...int64) tensor.Tensor {
	n := int64(1)
	for _, dim := range shape {
		n *= dim
	}
	values := make([]int64, n)
	for i := range values {
		values[i] = first + int64(i)
	}
	return ints(shape, values...)
}

// write writes a shard and returns it as an input of a request.
func write(t *testing.T, name string, tensors map[string]tensor.Tensor) driverproc.RequestInput {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shard")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tensorfile.Write(f, tensors, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	return driverproc.RequestInput{Role: toolchain.RoleCases, Name: name, Path: path}
}

func open(t *testing.T, slots []caserun.Slot, inputs ...driverproc.RequestInput) []*caserun.Shard {
	t.Helper()
	shards, err := caserun.Open(inputs, "m", slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range shards {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return shards
}

// Shards follow their names, whatever the order of the request, and each knows the number of its first case.
func TestOpen(t *testing.T) {
	t.Parallel()
	slots := []caserun.Slot{{Name: "x", DType: tensor.Int64, Shape: []int64{-1}}}
	shards := open(t, slots, write(t, "b", map[string]tensor.Tensor{"x": count(0, 1)}), write(t, "c", map[string]tensor.Tensor{"x": count(0, 4)}),
		write(t, "a", map[string]tensor.Tensor{"x": count(0, 2), "label": count(0, 9)}))
	var got []string
	for _, s := range shards {
		got = append(got, fmt.Sprintf("%s from %d: %d", s.Name, s.First, s.Count))
	}
	if want := []string{"a from 0: 2", "b from 2: 1", "c from 3: 4"}; !slices.Equal(got, want) || caserun.Cases(shards) != 7 {
		t.Errorf("shards %q with %d cases, want %q with 7", got, caserun.Cases(shards), want)
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	text, err := tensor.PackText([]string{"one", "three"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	tensors := map[string]tensor.Tensor{"x": count(0, 2, 3), "n": count(0, 2), "t": text}
	for _, tc := range []struct {
		slot    caserun.Slot
		want    []int64
		batched bool
		bytes   int64
	}{
		{caserun.Slot{Name: "x", DType: tensor.Int64, Shape: []int64{-1, 3}}, []int64{1, 3}, true, 24},
		{caserun.Slot{Name: "x", DType: tensor.Int64, Shape: []int64{3}}, []int64{3}, false, 24},
		{caserun.Slot{Name: "n", DType: tensor.Int64}, []int64{}, false, 8},
		{caserun.Slot{Name: "t", DType: validators.Text, Shape: []int64{-1}}, []int64{1, 5}, true, 5},
		{caserun.Slot{Name: "t", DType: validators.Text}, []int64{5}, false, 5},
	} {
		shards := open(t, []caserun.Slot{tc.slot}, write(t, "a", tensors))
		got, batched := shards[0].Row(tc.slot)
		if bytes := shards[0].RowBytes(tc.slot.Name); !slices.Equal(got, tc.want) || batched != tc.batched || bytes != tc.bytes {
			t.Errorf("%+v: a case has the shape %v, batched %v, %d bytes: want %v, %v, %d", tc.slot, got, batched, bytes, tc.want, tc.batched, tc.bytes)
		}
	}
}

// Small cases are read in blocks, large ones alone, in any order; each read has the bytes of its case.
func TestRead(t *testing.T) {
	t.Parallel()
	const cases, large = 300, 1 << 15
	slots := []caserun.Slot{
		{Name: "small", DType: tensor.Int64, Shape: []int64{1000}}, {Name: "large", DType: tensor.Int64, Shape: []int64{large}},
		{Name: "empty", DType: tensor.Int64, Shape: []int64{-1}},
	}
	tensors := map[string]tensor.Tensor{"small": count(0, cases, 1000), "large": count(7, cases, large), "empty": count(0, cases, 0)}
	s := open(t, slots, write(t, "a", tensors))[0]
	rooms := make(map[string][]byte)
	for _, slot := range slots {
		rooms[slot.Name] = make([]byte, s.RowBytes(slot.Name))
	}
	for _, c := range []int64{0, 1, 64, 65, 66, 130, 129, 299, 0, 298} {
		for name, room := range rooms {
			if err := s.Read(name, c, room); err != nil {
				t.Fatal(err)
			}
			stride := int64(len(room))
			if want := tensors[name].Data[c*stride : (c+1)*stride]; !slices.Equal(room, want) {
				t.Errorf("case %d of %s is not the case of the file", c, name)
			}
		}
	}
}

// A run reads each case of each engine, so reads of small cases leave no garbage.
func TestReadDoesNotAllocate(t *testing.T) {
	slots := []caserun.Slot{{Name: "x", DType: tensor.Int64, Shape: []int64{3}}}
	s := open(t, slots, write(t, "a", map[string]tensor.Tensor{"x": count(0, 100, 3)}))[0]
	room := make([]byte, s.RowBytes("x"))
	if err := s.Read("x", 0, room); err != nil { // it reads the block
		t.Fatal(err)
	}
	next := int64(0)
	if n := testing.AllocsPerRun(99, func() {
		if err := s.Read("x", next%100, room); err != nil {
			t.Error(err)
		}
		next++
	}); n != 0 {
		t.Errorf("a read allocates %v times, want 0", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	x, n := caserun.Slot{Name: "x", DType: tensor.Int64, Shape: []int64{-1, 3}}, caserun.Slot{Name: "n", DType: tensor.Int64}
	type tensors = map[string]tensor.Tensor
	for name, tc := range map[string]struct {
		slots []caserun.Slot
		cases tensors
		want  string
	}{
		"no shard":  {[]caserun.Slot{x}, nil, "run: no cases: want safetensors files as inputs of role cases"},
		"no cases":  {[]caserun.Slot{x}, tensors{"x": count(0, 0, 3)}, "cases a: it has no cases"},
		"no tensor": {[]caserun.Slot{x, n}, tensors{"x": count(0, 1, 3), "y": n1()}, "cases a: no tensor for the input n of the engine m: there are x, y"},
		"counts":    {[]caserun.Slot{x, n}, tensors{"x": count(0, 1, 3), "n": count(0, 2)}, `cases a: tensor "n" has 2 cases, "x" has 1`},
		"scalar":    {[]caserun.Slot{n}, tensors{"n": ints(nil, 1)}, wants(`"n" is int64 []`, "int64 []")},
		"shape":     {[]caserun.Slot{x}, tensors{"x": count(0, 1, 2)}, wants(`"x" is int64 [1 2]`, "int64 [-1 3]")},
		"rank":      {[]caserun.Slot{x}, tensors{"x": count(0, 1, 1, 1, 3)}, wants(`"x" is int64 [1 1 1 3]`, "int64 [-1 3]")},
		"batch": {[]caserun.Slot{{Name: "x", DType: tensor.Int64, Shape: []int64{2, 3}}}, tensors{"x": count(0, 2, 3)},
			wants(`"x" is int64 [2 3]`, "int64 [2 3]")},
		"dtype": {[]caserun.Slot{{Name: "x", DType: tensor.Float32, Shape: []int64{3}}}, tensors{"x": count(0, 1, 3)},
			wants(`"x" is int64 [1 3]`, "float32 [3]")},
		"no text": {[]caserun.Slot{{Name: "n", DType: validators.Text}}, tensors{"n": n1()}, wants(`"n" is int64 [1]`, "string []")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inputs []driverproc.RequestInput
			if tc.cases != nil {
				inputs = append(inputs, write(t, "a", tc.cases))
			}
			_, err := caserun.Open(inputs, "m", tc.slots)
			var failed *driverproc.Error
			if !errors.As(err, &failed) || failed.Code != driverproc.BadInput || err.Error() != tc.want {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
	garbage := filepath.Join(t.TempDir(), "g")
	if err := os.WriteFile(garbage, []byte("no tensors in sight"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := caserun.Open([]driverproc.RequestInput{{Name: "g", Path: garbage}}, "m", []caserun.Slot{x})
	var failed *driverproc.Error
	if !errors.As(err, &failed) || failed.Code != driverproc.BadInput {
		t.Errorf("garbage opens with %v, want bad_input", err)
	}
}

func n1() tensor.Tensor { return count(0, 1) }

func wants(tensor, engine string) string {
	return "cases a: tensor " + tensor + ": for each case the engine m wants " + engine +
		", where -1 is any size, with a case dimension in front or as the first dimension"
}

// A further engine is checked by the same rules, against the count that the first found.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := open(t, []caserun.Slot{{Name: "x", DType: tensor.Int64, Shape: []int64{3}}},
		write(t, "a", map[string]tensor.Tensor{"x": count(0, 2, 3), "y": count(0, 1, 3)}))[0]
	if err := s.Check("n", []caserun.Slot{{Name: "x", DType: tensor.Int64, Shape: []int64{-1, -1}}}); err != nil {
		t.Error(err)
	}
	err := s.Check("n", []caserun.Slot{{Name: "y", DType: tensor.Int64, Shape: []int64{3}}})
	if err == nil || err.Error() != `cases a: tensor "y" has 1 cases, "y" has 2` {
		t.Errorf("error %v, want the other count", err)
	}
}
