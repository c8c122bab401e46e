package validators_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// segmented are scores of three classes for 40 cases of 16 by 16 places. Class 2 is that of one place in each of so many cases.
func segmented(rare int, rng *rand.Rand) [][]float32 {
	const classes, places = 3, 256
	cases := make([][]float32, 40)
	for i := range cases {
		scores := make([]float32, classes*places)
		for p := range places {
			class := p / 128
			if i < rare && p == 7*i%places {
				class = 2
			}
			for c := range classes {
				scores[c*places+p] = float32(rng.NormFloat64())
			}
			scores[class*places+p] += 8
		}
		cases[i] = scores
	}
	return cases
}

func maskOutput() validators.TensorInfo {
	return validators.TensorInfo{Name: "mask", DType: tensor.Float32, Kind: validators.KindMask,
		Shape: []validators.Dim{{Symbol: "batch"}, {Size: 3}, {Size: 16}, {Size: 16}}}
}

// compareMasks compares cases of a mask by the default limits of int8.
func compareMasks(t *testing.T, reference, engine [][]float32) (validators.Limits, tensor.Result) {
	t.Helper()
	output := maskOutput()
	limited, err := validators.DefaultLimits("int8", output, len(reference))
	if err != nil {
		t.Fatal(err)
	}
	c := tensor.NewComparison(limited.Comparison(output))
	for i := range reference {
		want, errWant := tensor.New(reference[i], 3, 16, 16)
		got, errGot := tensor.New(engine[i], 3, 16, 16)
		if errWant != nil || errGot != nil || c.Add(i, want, got) != nil {
			t.Fatal(errWant, errGot)
		}
	}
	l := limits2(limited)
	l.Precisions = map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{"mask": limited}}}
	return l, c.Result()
}

// A mask has answers: an engine that never gives a rare class fails, although hardly a place differs, and so does one that shifts the
// scores of a class. A report of it is judged alike.
func TestMasksHaveAnswers(t *testing.T) {
	t.Parallel()
	const places = 256
	for name, c := range map[string]struct {
		rare   int
		change func(scores []float32)
		want   evidence.Verdict
		figure string
	}{
		"honest": {20, func(scores []float32) {
			for i := range scores {
				scores[i] = float32(int(scores[i]*8)) / 8
			}
		}, evidence.VerdictPass, ""},
		"never the rare class": {20, func(scores []float32) {
			for p := range places {
				scores[2*places+p] = min(scores[2*places+p], -1)
			}
		}, evidence.VerdictFail, figure.KeptClasses},
		"in four cases, its scores show it": {4, func(scores []float32) {
			for p := range places {
				scores[2*places+p] = min(scores[2*places+p], -1)
			}
		}, evidence.VerdictFail, figure.Systematic},
		"a class is shifted": {20, func(scores []float32) {
			for p := range places {
				scores[places+p]++
			}
		}, evidence.VerdictFail, figure.Systematic},
		"classes change places": {20, func(scores []float32) {
			for p := range places / 8 {
				scores[p], scores[places+p] = scores[places+p], scores[p]
			}
		}, evidence.VerdictFail, figure.Top1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference, engine := segmented(c.rare, rand.New(rand.NewPCG(1, 2))), segmented(c.rare, rand.New(rand.NewPCG(1, 2)))
			for _, scores := range engine {
				c.change(scores)
			}
			limits, result := compareMasks(t, reference, engine)
			got := limits.Judge("int8", validators.Measured{Outputs: map[string]tensor.Result{"mask": result}, Cases: len(reference)})
			var reasons []string
			for _, r := range got.Reasons {
				reasons = append(reasons, r.Figure)
			}
			if got.Verdict != c.want || c.figure != "" && !strings.Contains(strings.Join(reasons, " "), c.figure) {
				t.Errorf("%s by %v: %+v, want %s by %q", got.Verdict, reasons, got.Reasons, c.want, c.figure)
			}
			report := evidence.ParityReport{Rules: validators.LimitsVersion, Attempts: 1, Confidence: evidence.Figure(got.Confidence), Cases: evidence.CasesRun{Count: 40, Ran: 40},
				Checks: append(got.Checks, goldenCompared()...), Outputs: map[string]evidence.OutputFigures{"mask": parity.Figures("float32", result)}}
			report.Verdict, report.Reasons = got.Verdict, got.Reasons
			again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "int8"})
			if err != nil || again.Verdict != got.Verdict || len(again.Differences) > 0 {
				t.Errorf("judged again: %s with %+v (%v)", again.Verdict, again.Differences, err)
			}
			report.Verdict, report.Reasons = evidence.VerdictPass, nil
			for i := range report.Checks {
				if report.Checks[i].Figure == figure.KeptClasses {
					report.Checks = append(report.Checks[:i], report.Checks[i+1:]...)
					break
				}
			}
			if lies, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "int8"}); err != nil || lies.Verdict == evidence.VerdictPass {
				t.Errorf("without the check of classes: %s (%v), want no pass", lies.Verdict, err)
			}
		})
	}
}

// The worst element of a mask has its own index.
func TestWorstElementOfAMask(t *testing.T) {
	t.Parallel()
	reference, engine := segmented(0, rand.New(rand.NewPCG(1, 2))), segmented(0, rand.New(rand.NewPCG(1, 2)))
	engine[5][2*256+3*16+9] += 50
	if _, r := compareMasks(t, reference, engine); r.Worst == nil || r.Worst.Case != 5 || len(r.Worst.Index) != 3 ||
		[3]int64(r.Worst.Index) != [3]int64{2, 3, 9} || r.Worst.Engine != float64(engine[5][2*256+3*16+9]) {
		t.Errorf("worst element %+v, want that of case 5 at [2 3 9]", r.Worst)
	}
}

// Which axis has the classes follows from the shape; quantities in four dimensions have none.
func TestClassAxis(t *testing.T) {
	t.Parallel()
	dims := func(sizes ...int64) []validators.Dim {
		shape := []validators.Dim{{Symbol: "batch"}}
		for _, size := range sizes {
			shape = append(shape, validators.Dim{Size: size})
		}
		return shape
	}
	open := validators.Dim{Symbol: "width"}
	for name, c := range map[string]struct {
		kind  validators.Kind
		shape []validators.Dim
		axis  int
		ok    bool
	}{
		"classes in front":    {validators.KindMask, dims(21, 64, 64), 2, true},
		"classes at the end":  {validators.KindMask, dims(64, 64, 21), 0, true},
		"open sizes":          {validators.KindMask, append(dims(21), open, open), 2, true},
		"open sizes in front": {validators.KindMask, []validators.Dim{{Symbol: "batch"}, open, open, {Size: 5}}, 0, true},
		"one number":          {validators.KindMask, dims(1, 64, 64), 0, false},
		"no classes":          {validators.KindMask, dims(512, 512), 0, false},
		"a cache":             {validators.KindState, dims(8, 16, 64), 0, false},
		"other":               {validators.KindOther, dims(8, 16, 64), 0, false},
	} {
		output := validators.TensorInfo{Name: "y", DType: tensor.Float32, Kind: c.kind, Shape: c.shape}
		if axis, ok := output.ClassAxis(); ok != c.ok || axis != c.axis {
			t.Errorf("%s: axis %d, %t; want %d, %t", name, axis, ok, c.axis, c.ok)
		}
	}
	image := validators.TensorInfo{Name: "x", DType: tensor.Float32, Shape: dims(3, 64, 64)}
	for name, c := range map[string]struct {
		output []validators.Dim
		want   validators.Kind
	}{"of the image's size": {dims(4, 64, 64), validators.KindMask}, "of another size": {dims(8, 16, 32), validators.KindOther}} {
		i := validators.Interface{Inputs: []validators.TensorInfo{image}, Outputs: []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: c.output}}}
		if got := i.GuessKinds(nil)["y"]; got.Kind != c.want {
			t.Errorf("%s: %s because %s, want %s", name, got.Kind, got.Why, c.want)
		}
	}
}
