package diagnose

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A case that is given is written as a file of one case; what is no tensor of one case is refused.
func TestGivenCase(t *testing.T) {
	t.Parallel()
	x := floats32(t, []float32{1, 2}, 1, 2)
	dir := filepath.Join(t.TempDir(), "a", "b")
	got, err := givenCase(map[string]tensor.Tensor{"x": x}, dir)
	if err != nil || len(got) != 1 || got[0].number != 0 || got[0].input.Role != toolchain.RoleCases || filepath.Dir(got[0].input.Path) != dir {
		t.Errorf("got %+v, error %v; want a file of one case in %s", got, err, dir)
	}
	x.Data = x.Data[:3]
	if _, err := givenCase(map[string]tensor.Tensor{"x": x}, dir); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "the inputs of the case: ") {
		t.Errorf("bytes that do not fit the shape: error %v, want CodeInvalid", err)
	}
}

// A tensor is described by its finite values.
func TestSummaryOf(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, c := range map[string]struct {
		values                 []float32
		min, max, mean, spread float64
		others                 int
	}{
		"values":            {[]float32{1, 5, 3}, 1, 5, 3, math.Sqrt(8.0 / 3), 0},
		"beside infinities": {[]float32{float32(math.Inf(1)), 2, float32(math.NaN()), 4}, 2, 4, 3, 1, 2},
		"all the same":      {[]float32{7, 7}, 7, 7, 7, 0, 0},
		"none finite":       {[]float32{float32(math.Inf(-1))}, nan, nan, nan, nan, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summaryOf("x", floats32(t, c.values, int64(len(c.values))))
			for what, pair := range map[string][2]float64{"min": {float64(got.Min), c.min}, "max": {float64(got.Max), c.max},
				"mean": {float64(got.Mean), c.mean}, "spread": {float64(got.Spread), c.spread}} {
				if math.IsNaN(pair[0]) != math.IsNaN(pair[1]) || math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
				}
			}
			if got.Others != c.others || got.Name != "x" || got.DType != "float32" || !slices.Equal(got.Shape, []int64{int64(len(c.values))}) {
				t.Errorf("got %+v, want %d others", got, c.others)
			}
		})
	}
}

// Outputs that cannot be compared are no outputs without an error.
func TestReplayOfAnotherShape(t *testing.T) {
	t.Parallel()
	of := func(values ...float32) map[string]tensor.Tensor {
		y, err := tensor.New(values, 1, int64(len(values)))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]tensor.Tensor{"y": y}
	}
	v := verify.Session{}
	v.Iface.Outputs = []validators.TensorInfo{{Name: "y"}}
	r := Replayed{Reference: of(1, 2), Computed: of(1, 2, 3)}
	r.summarize(v, run.Candidate{}, nil)
	if y := r.Outputs[0]; !strings.Contains(y.Problem, "the engine has shape [1 3], the reference [1 2]") || !math.IsNaN(float64(y.MaxAbs)) || !math.IsNaN(float64(y.SNRdB)) {
		t.Errorf("%+v, want no figures and why", y)
	}
	r = Replayed{Reference: of(1, 2), Computed: of(1, 2.5)}
	r.summarize(v, run.Candidate{}, nil)
	if y := r.Outputs[0]; y.Problem != "" || y.MaxAbs != 0.5 {
		t.Errorf("%+v, want a largest error of 0.5", y)
	}
}

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
	figures := func(number int, snr float64) evidence.OutputFigures {
		return evidence.OutputFigures{SNRdB: evidence.Figure(snr), Worst: &evidence.Worst{Case: number}}
	}
	for name, c := range map[string]struct {
		report evidence.ParityReport
		number int
		ok     bool
	}{
		"nothing differs": {evidence.ParityReport{Outputs: map[string]evidence.OutputFigures{"y": {SNRdB: evidence.Figure(math.Inf(1))}}}, 0, false},
		"the output with the most noise": {evidence.ParityReport{Outputs: map[string]evidence.OutputFigures{
			"a": figures(1, 40), "b": figures(2, 20), "c": figures(3, 30), "d": {SNRdB: -10}}}, 2, true},
		"of two alike, the first by name": {evidence.ParityReport{
			Outputs: map[string]evidence.OutputFigures{"b": figures(2, 20), "a": figures(1, 20)}}, 1, true},
		"the limit that failed": {evidence.ParityReport{
			Checks: evidence.Checks{
				{Trial: evidence.TrialCases, Verdict: evidence.VerdictFail}, {Trial: evidence.TrialCases, Verdict: evidence.VerdictPass, Case: new(int)},
				{Trial: evidence.TrialCases, Verdict: evidence.VerdictFail, Case: &seven}},
			Outputs: map[string]evidence.OutputFigures{"b": figures(2, 20)}}, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if number, ok := WorstCase(c.report); number != c.number || ok != c.ok {
				t.Errorf("got %d, %t; want %d, %t", number, ok, c.number, c.ok)
			}
		})
	}
}
