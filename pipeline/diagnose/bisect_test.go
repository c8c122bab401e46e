package diagnose

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A bisection runs the cases of the worst elements, also the first case, and then others evenly from all.
func TestCasesOfABisection(t *testing.T) {
	t.Parallel()
	worst := func(cases ...int) evidence.ParityReport {
		report := evidence.ParityReport{Outputs: make(map[string]evidence.OutputFigures)}
		for i, number := range cases {
			report.Outputs[string(rune('a'+i))] = evidence.OutputFigures{Worst: &evidence.Worst{Case: number}}
		}
		report.Outputs["exact"] = evidence.OutputFigures{}
		return report
	}
	for name, c := range map[string]struct {
		report      evidence.ParityReport
		count, most int
		want        []int
	}{
		"no worst element":        {worst(), 8, 4, []int{0, 2, 4, 6}},
		"fewer cases than asked":  {worst(), 2, 4, []int{0, 1}},
		"the worst one":           {worst(7), 8, 1, []int{7}},
		"the first is the worst":  {worst(0), 8, 1, []int{0}},
		"the worst and others":    {worst(5), 8, 3, []int{0, 2, 5}},
		"one worst of two":        {worst(5, 5), 8, 2, []int{0, 5}},
		"more than asked":         {worst(5, 3, 1), 8, 2, []int{1, 3}},
		"behind the last case":    {worst(8), 8, 1, []int{0}},
		"the last case":           {worst(7), 8, 2, []int{0, 7}},
		"of no case":              {worst(-1), 8, 1, []int{0}},
		"worst among the regular": {worst(4), 8, 2, []int{0, 4}},
	} {
		if got := casesToRun(c.report, c.count, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Inner tensors of an engine that fails are held to the strictest limit of an output; those of one that is within its limits to
// what its worst output has, and a margin.
func TestLimitOfABisection(t *testing.T) {
	t.Parallel()
	limits := func(a, b float64) validators.Limits {
		return validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{
			"a": {SNRdB: &validators.AtLeast{Min: a}}, "b": {SNRdB: &validators.AtLeast{Min: b}}}}}}
	}
	near := floats32(t, []float32{1, 2, 3, 4}, 1, 4)
	off := floats32(t, []float32{1, 2, 3, 4.5}, 1, 4) // 13 dB
	for name, c := range map[string]struct {
		limits validators.Limits
		got    map[string]tensor.Tensor
		inner  map[string]float64
		within bool
		db     float64
		of     string
		ownOfA float64
	}{
		"both within":          {limits(10, 12), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, true, 20 + withinMargin, "b snr", 13},
		"nothing was measured": {limits(10, 12), map[string]tensor.Tensor{"a": off, "b": off}, nil, true, 12, "b snr", 13},
		"one is outside":       {limits(10, 40), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, false, 40, "b snr", 13},
		"the first is outside": {limits(40, 10), map[string]tensor.Tensor{"a": off, "b": off}, map[string]float64{"a": 30, "b": 20}, false, 40, "a snr", 13},
		"one did not run":      {limits(10, 12), map[string]tensor.Tensor{"a": off}, map[string]float64{"a": 30}, false, 12, "b snr", 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bisector{outputs: make(map[string]*summed)}
			b.v.Limits, b.c.Engine.Precision, b.graph.Outputs = c.limits, "int8", []string{"a", "b"}
			for output, got := range c.got {
				b.outputs[output] = newSummed()
				if err := b.outputs[output].add(0, near, got, false); err != nil {
					t.Fatal(err)
				}
			}
			var found Bisection
			b.limit(&found, c.inner)
			if found.WithinLimit != c.within || math.Abs(float64(found.LimitDB)-c.db) > 1e-9 || found.LimitOf != c.of {
				t.Errorf("within %t, %v dB of %s; want %t, %v of %s", found.WithinLimit, found.LimitDB, found.LimitOf, c.within, c.db, c.of)
			}
			if len(found.Outputs) != 2 || math.Abs(float64(found.Outputs[0].SNRdB)-c.ownOfA) > 0.5 {
				t.Errorf("outputs %+v, want about %v dB of the first", found.Outputs, c.ownOfA)
			}
		})
	}
}

// A bisection runs the worst cases of the report, and others evenly from all, and never more than it was asked for.
func TestCasesOfABisectionByReports(t *testing.T) {
	t.Parallel()
	worst := func(cases ...int) evidence.ParityReport {
		report := evidence.ParityReport{Outputs: map[string]evidence.OutputFigures{"without": {}}}
		for i, c := range cases {
			report.Outputs[fmt.Sprint("y", i)] = evidence.OutputFigures{Worst: &evidence.Worst{Case: c}}
		}
		return report
	}
	for name, c := range map[string]struct {
		report      evidence.ParityReport
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
