package pipeline

import (
	"fmt"
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

// A bisection runs the worst cases of the report, and others evenly from all, and never more than it was asked for.
func TestCasesOfABisectionByReports(t *testing.T) {
	t.Parallel()
	worst := func(cases ...int) registry.ParityReport {
		report := registry.ParityReport{Outputs: map[string]registry.OutputFigures{"without": {}}}
		for i, c := range cases {
			report.Outputs[fmt.Sprint("y", i)] = registry.OutputFigures{Worst: &registry.Worst{Case: c}}
		}
		return report
	}
	for name, c := range map[string]struct {
		report      registry.ParityReport
		count, most int
		want        []int
	}{
		"no report":                   {worst(), 100, 4, []int{0, 25, 50, 75}},
		"the worst, then others":      {worst(7), 100, 4, []int{0, 7, 25, 50}},
		"the worst alone":             {worst(7), 100, 1, []int{7}},
		"a worst case for each":       {worst(9, 7, 9), 100, 2, []int{7, 9}},
		"more worst cases than asked": {worst(9, 7, 8), 100, 2, []int{7, 8}},
		"first and last":              {worst(99, 0), 100, 2, []int{0, 99}},
		"cases that are not there":    {worst(-1, 100), 100, 1, []int{0}},
		"fewer cases than asked":      {worst(1), 3, 8, []int{0, 1, 2}},
		"one of the even ones":        {worst(50), 100, 4, []int{0, 25, 50, 75}},
	} {
		if got := casesToRun(c.report, c.count, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: cases %v, want %v", name, got, c.want)
		}
	}
}
