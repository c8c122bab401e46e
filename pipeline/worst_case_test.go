package pipeline

import (
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// An index is in one case, without the batch of one that a report counts.
func TestInCase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ index, shape, want []int64 }{
		{[]int64{0, 3}, []int64{1, 5}, []int64{3}},
		{[]int64{3}, []int64{1, 5}, []int64{3}},
		{[]int64{1, 3}, []int64{2, 5}, []int64{1, 3}},
		{nil, nil, nil},
	} {
		if got := inCase(c.index, c.shape); !slices.Equal(got, c.want) {
			t.Errorf("%v in %v: got %v, want %v", c.index, c.shape, got, c.want)
		}
	}
}

// The worst case of a report is that of the limit that failed, or else the worst element of the output with the most noise.
func TestWorstCase(t *testing.T) {
	t.Parallel()
	seven := 7
	figures := func(number int, snr float64) registry.OutputFigures {
		return registry.OutputFigures{SNRdB: registry.Figure(snr), Worst: &registry.Worst{Case: number}}
	}
	for name, c := range map[string]struct {
		report registry.ParityReport
		number int
		ok     bool
	}{
		"nothing differs": {registry.ParityReport{Outputs: map[string]registry.OutputFigures{"y": {SNRdB: registry.Figure(math.Inf(1))}}}, 0, false},
		"the output with the most noise": {registry.ParityReport{Outputs: map[string]registry.OutputFigures{
			"a": figures(1, 40), "b": figures(2, 20), "c": figures(3, 30), "d": {SNRdB: -10}}}, 2, true},
		"of two alike, the first by name": {registry.ParityReport{
			Outputs: map[string]registry.OutputFigures{"b": figures(2, 20), "a": figures(1, 20)}}, 1, true},
		"the limit that failed": {registry.ParityReport{
			Checks: []registry.Check{
				{Verdict: registry.VerdictFail}, {Verdict: registry.VerdictPass, Case: new(int)}, {Verdict: registry.VerdictFail, Case: &seven}},
			Outputs: map[string]registry.OutputFigures{"b": figures(2, 20)}}, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if number, ok := WorstCase(c.report); number != c.number || ok != c.ok {
				t.Errorf("got %d, %t; want %d, %t", number, ok, c.number, c.ok)
			}
		})
	}
}
