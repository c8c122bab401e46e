package pipeline

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/divergence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func floats32(t *testing.T, values []float32, shape ...int64) tensor.Tensor {
	t.Helper()
	made, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The last dimension moves behind the first: [2, 2, 3] with channels last is [2, 3, 2] with channels first.
func TestChannelsFirst(t *testing.T) {
	t.Parallel()
	got, ok := channelsFirst(floats32(t, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, 2, 3))
	want := floats32(t, []float32{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}, 2, 3, 2)
	if !ok || !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) || got.DType != want.DType {
		t.Errorf("got %v %v, %t; want %v %v", got.Shape, got.Data, ok, want.Shape, want.Data)
	}
	for _, rank := range []int{1, 2, 3, 6, 7} {
		shape := slices.Repeat([]int64{1}, rank)
		if _, ok := channelsFirst(floats32(t, []float32{1}, shape...)); ok != (rank >= 3 && rank <= 6) {
			t.Errorf("rank %d: got %t", rank, ok)
		}
	}
}

// Engines of some runtimes have their channels last. Where the shape says so, or the values fit better so, they are moved.
func TestSummedTurns(t *testing.T) {
	t.Parallel()
	first := []float32{1, 4, 2, 5, 3, 6}
	last := []float32{1, 2, 3, 4, 5, 6}
	square, turned := []float32{1, 2, 3, 4}, []float32{1, 3, 2, 4}
	for name, c := range map[string]struct {
		want, got []float32
		shapes    [2][]int64
		mayTurn   bool
		fits      bool
		turned    bool
		exact     bool
	}{
		"as the reference":                        {first, first, [2][]int64{{1, 3, 2}, {1, 3, 2}}, true, true, false, true},
		"channels last, by the shape":             {first, last, [2][]int64{{1, 3, 2}, {1, 2, 3}}, true, true, true, true},
		"channels last, of a runtime without":     {first, last, [2][]int64{{1, 3, 2}, {1, 2, 3}}, false, false, false, false},
		"channels last, by the values":            {square, turned, [2][]int64{{1, 2, 2}, {1, 2, 2}}, true, true, true, true},
		"by the values, of a runtime without":     {square, turned, [2][]int64{{1, 2, 2}, {1, 2, 2}}, false, true, false, false},
		"the same in both layouts":                {[]float32{1, 2, 2, 1}, []float32{1, 2, 2, 1}, [2][]int64{{1, 2, 2}, {1, 2, 2}}, true, true, false, true},
		"of two dimensions, which have no others": {square, turned, [2][]int64{{2, 2}, {2, 2}}, true, true, false, false},
		"of a shape that fits in no way":          {first, last, [2][]int64{{1, 3, 2}, {1, 6, 1}}, true, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSummed()
			for number := range 2 {
				err := s.add(number, floats32(t, c.want, c.shapes[0]...), floats32(t, c.got, c.shapes[1]...), c.mayTurn)
				if (err == nil) != c.fits {
					t.Fatalf("case %d: got %v, want that it fits: %t", number, err, c.fits)
				}
			}
			if !c.fits {
				return
			}
			result, turned := s.result()
			if turned != c.turned || math.IsInf(result.SNR, 1) != c.exact || result.Cases != 2 {
				t.Errorf("turned %t, SNR %v of %d cases; want turned %t, exact %t of 2", turned, result.SNR, result.Cases, c.turned, c.exact)
			}
		})
	}
}

// Of two layouts that fit, the one of every case counts: one case that cannot be moved leaves all as they are.
func TestSummedOfCasesInTwoLayouts(t *testing.T) {
	t.Parallel()
	s := newSummed()
	for i, shape := range [][]int64{{1, 2, 2}, {2, 2}} {
		if err := s.add(i, floats32(t, []float32{1, 2, 3, 4}, shape...), floats32(t, []float32{1, 3, 2, 4}, shape...), true); err != nil {
			t.Fatal(err)
		}
	}
	if _, turned := s.result(); turned {
		t.Error("turned, though one of two cases cannot be")
	}
}

// Tensors are asked for in chunks: so many, and so many bytes, as far as shapes are known.
func TestBisectorChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int64
		want  int64
	}{{nil, 8}, {[]int64{3, 5}, 120}, {[]int64{-1, 2}, 8 * openSize * 2}, {[]int64{0, 7}, 56}, {[]int64{1 << 40, 1 << 40}, 8 << 40}} {
		if got := (innerValue{Shape: c.shape}).bytes(); got != c.want {
			t.Errorf("bytes of %v: got %d, want %d", c.shape, got, c.want)
		}
	}
	b := &bisector{inner: make(map[string]innerValue)}
	add := func(n int, shape ...int64) {
		for range n {
			name := fmt.Sprint(len(b.wanted))
			b.wanted, b.inner[name] = append(b.wanted, name), innerValue{Shape: shape}
		}
	}
	lengths := func() []int {
		var all []int
		for _, chunk := range b.chunks() {
			all = append(all, len(chunk))
		}
		return all
	}
	if got := lengths(); got != nil {
		t.Errorf("of nothing: got %v", got)
	}
	add(chunkTensors+1, 4)
	if got, want := lengths(), []int{chunkTensors, 1}; !slices.Equal(got, want) {
		t.Errorf("of small tensors: got %v, want %v", got, want)
	}
	add(2, chunkBytes/16) // two halves, after a small one
	if got, want := lengths(), []int{chunkTensors, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with two of half a chunk: got %v, want %v", got, want)
	}
	add(1, chunkBytes/16)
	if got, want := lengths(), []int{chunkTensors, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("with two that fill a chunk: got %v, want %v", got, want)
	}
	add(1, chunkBytes) // more than a chunk has, and so alone
	if got, want := lengths(), []int{chunkTensors, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with one that is larger than a chunk: got %v, want %v", got, want)
	}
}

// An engine keeps the names of tensors if it has a fifth of the inner ones; outputs have names in every engine.
func TestKeepsNames(t *testing.T) {
	t.Parallel()
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("inner", i))
		}
		return all
	}
	for _, c := range []struct {
		inner, kept int
		want        bool
	}{{0, 0, true}, {1, 0, false}, {1, 1, true}, {10, 1, false}, {10, 2, true}, {10, 10, true}} {
		b := &bisector{graph: divergence.Graph{Values: []divergence.Value{{Name: "y"}}, Outputs: []string{"y"}}}
		own := map[string]bool{"y": true}
		for i, name := range names(c.inner) {
			b.graph.Values = append(b.graph.Values, divergence.Value{Name: name})
			own[name] = i < c.kept
		}
		if got := b.keepsNames(own); got != c.want {
			t.Errorf("%d of %d inner tensors: got %t, want %t", c.kept, c.inner, got, c.want)
		}
	}
}

// So many problems are named, each once.
func TestBisectorProblems(t *testing.T) {
	t.Parallel()
	var b bisector
	for i := range 2 * (maxProblems + 1) {
		b.problem("tensor %d", i/2)
	}
	if len(b.problems) != maxProblems || b.problems[0] != "tensor 0" || b.problems[1] != "tensor 1" {
		t.Errorf("got %q, want %d, each once", b.problems, maxProblems)
	}
}

func TestNamesOf(t *testing.T) {
	t.Parallel()
	got := namesOf([]innerValue{{Value: divergence.Value{Name: "a"}}, {Value: divergence.Value{Name: "b"}}})
	if len(got) != 2 || !got["a"] || !got["b"] || got["c"] {
		t.Errorf("got %v, want a and b", got)
	}
}
