package diagnose

import (
	"math"
	"slices"
	"testing"

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
