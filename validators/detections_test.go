package validators_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// info is an output of the sizes behind the batch.
func info(name string, dtype tensor.DType, sizes ...int64) validators.TensorInfo {
	t := validators.TensorInfo{Name: name, DType: dtype, Shape: []validators.Dim{{Symbol: "batch"}}}
	for _, size := range sizes {
		t.Shape = append(t.Shape, validators.Dim{Size: size})
	}
	return t
}

// Boxes with a number for each are detections, in the order in which the model finds them; boxes alone are numbers at fixed places.
func TestGuessDetections(t *testing.T) {
	t.Parallel()
	boxes, scores, classes := info("boxes", tensor.Float32, 100, 4), info("top_scores", tensor.Float32, 100), info("labels", tensor.Int64, 100)
	for name, c := range map[string]struct {
		outputs []validators.TensorInfo
		want    []validators.Kind
	}{
		"three":           {[]validators.TensorInfo{boxes, scores, classes}, []validators.Kind{validators.KindDetections, validators.KindDetections, validators.KindDetections}},
		"one class":       {[]validators.TensorInfo{scores, boxes}, []validators.Kind{validators.KindDetections, validators.KindDetections}},
		"float classes":   {[]validators.TensorInfo{boxes, scores, info("class", tensor.Float32, 100)}, []validators.Kind{validators.KindDetections, validators.KindDetections, validators.KindDetections}},
		"another beside":  {[]validators.TensorInfo{boxes, scores, info("embedding", tensor.Float32, 64)}, []validators.Kind{validators.KindDetections, validators.KindDetections, validators.KindEmbedding}},
		"alone":           {[]validators.TensorInfo{boxes}, []validators.Kind{validators.KindBoxes}},
		"classes alone":   {[]validators.TensorInfo{boxes, classes}, []validators.Kind{validators.KindBoxes, validators.KindClass}},
		"of each class":   {[]validators.TensorInfo{boxes, info("scores", tensor.Float32, 100, 80)}, []validators.Kind{validators.KindDetections, validators.KindDetections}},
		"of four classes": {[]validators.TensorInfo{info("class_logits", tensor.Float32, 100, 4), boxes}, []validators.Kind{validators.KindDetections, validators.KindDetections}},
		"embeddings":      {[]validators.TensorInfo{boxes, info("features", tensor.Float32, 100, 80)}, []validators.Kind{validators.KindBoxes, validators.KindEmbedding}},
		"other places":    {[]validators.TensorInfo{boxes, info("scores", tensor.Float32, 99)}, []validators.Kind{validators.KindBoxes, validators.KindScores}},
		"two of a kind":   {[]validators.TensorInfo{boxes, scores, info("score_2", tensor.Float32, 100)}, []validators.Kind{validators.KindBoxes, validators.KindScores, validators.KindScores}},
		"several boxes":   {[]validators.TensorInfo{boxes, info("box_2", tensor.Float32, 100, 4), scores}, []validators.Kind{validators.KindBoxes, validators.KindBoxes, validators.KindScores}},
		"in one, unnamed": {[]validators.TensorInfo{info("output0", tensor.Float32, 300, 6)}, []validators.Kind{validators.KindOther}},
	} {
		got := validators.Interface{Outputs: c.outputs}.GuessKinds(nil)
		for i, output := range c.outputs {
			if got[output.Name].Kind != c.want[i] {
				t.Errorf("%s: %s is %+v, want %s", name, output.Name, got[output.Name], c.want[i])
			}
		}
	}
}

func TestDetectionsTogether(t *testing.T) {
	t.Parallel()
	iface := func(outputs ...validators.TensorInfo) validators.Interface {
		i := validators.Interface{V: validators.InterfaceVersion, Inputs: []validators.TensorInfo{info("image", tensor.Float32, 3, 32, 32)},
			Dims: map[string]validators.DimRange{"batch": validators.DefaultDimRange()}}
		for _, output := range outputs {
			output.Kind = validators.KindDetections
			i.Outputs = append(i.Outputs, output)
		}
		return i
	}
	boxes, scores, classes := info("b", tensor.Float32, 9, 4), info("s", tensor.Float32, 9), info("c", tensor.Int32, 9)
	for name, c := range map[string]struct {
		of    validators.Interface
		names []string
	}{
		"one":         {iface(info("all", tensor.Float32, 9, 6)), []string{"all"}},
		"three":       {iface(classes, scores, boxes), []string{"b", "s", "c"}},
		"two":         {iface(scores, boxes), []string{"b", "s"}},
		"no boxes":    {iface(scores, classes), nil},
		"no scores":   {iface(boxes, classes), nil},
		"seven":       {iface(info("all", tensor.Float32, 9, 7)), nil},
		"two of one":  {iface(info("all", tensor.Float32, 9, 6), info("more", tensor.Float32, 9, 6)), nil},
		"booleans":    {iface(boxes, scores, info("c", tensor.Bool, 9)), nil},
		"a fourth":    {iface(boxes, scores, classes, info("d", tensor.Int32, 9)), nil},
		"of classes":  {iface(boxes, info("s", tensor.Float32, 9, 3)), []string{"b", "s"}},
		"both":        {iface(boxes, info("s", tensor.Float32, 9, 3), classes), nil},
		"whole boxes": {iface(info("b", tensor.Int32, 9, 4), scores), nil},
	} {
		of, ok, err := c.of.Detections()
		if ok != (c.names != nil) || ok && !slices.Equal(of.Names(), c.names) || ok && c.of.Validate() != nil {
			t.Errorf("%s: %v, %v, %v, %v; want %v", name, of.Names(), ok, err, c.of.Validate(), c.names)
		}
		if c.names == nil {
			checkInvalid(t, name, c.of.Validate(), "of kind detections: want one output [n, k, 6] of x1, y1, x2, y2, score, class, or outputs with boxes")
		}
	}
	if _, ok, err := digits().Detections(); ok || err != nil {
		t.Errorf("digits have detections, %v", err)
	}
}

// No limit by position holds for detections, whatever they have.
func TestDefaultLimitsOfDetections(t *testing.T) {
	t.Parallel()
	for _, output := range []validators.TensorInfo{info("b", tensor.Float32, 9, 4), info("s", tensor.Float32, 9), info("c", tensor.Int64, 9)} {
		output.Kind = validators.KindDetections
		for _, precision := range validators.Precisions() {
			limits, err := validators.DefaultLimits(precision, output, 400)
			if err != nil || limits != (validators.OutputLimits{Detections: limits.Detections}) || limits.Detections == nil {
				t.Errorf("%s in %s: %+v, %v; want a limit on detections alone", output.Name, precision, limits, err)
			}
		}
	}
}

// judgeOne judges one output by the default limits of int8.
func judgeOne(t *testing.T, output validators.TensorInfo, r tensor.Result) validators.Judgement {
	t.Helper()
	limited, err := validators.DefaultLimits("int8", output, r.Cases)
	if err != nil {
		t.Fatal(err)
	}
	l := limits2(limited)
	l.Precisions = map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{output.Name: limited}}}
	return l.Judge("int8", validators.Measured{Outputs: map[string]tensor.Result{output.Name: r}, Cases: r.Cases})
}

func TestJudgeDetections(t *testing.T) {
	t.Parallel()
	output := info("b", tensor.Float32, 9, 4)
	output.Kind = validators.KindDetections
	for misses, want := range map[float64]evidence.Verdict{0: evidence.VerdictPass, 16: evidence.VerdictPass, 200: evidence.VerdictFail} {
		r := tensor.Result{Cases: 400, FullCases: 400, Elements: 14400, Float: true, DetectionMisses: misses, DetectionCases: 400,
			CaseError: 9, MaxError: 99, SpreadSNR: -9, Systematic: 3}
		if got := judgeOne(t, output, r); got.Verdict != want || len(got.Checks) != 1 || got.Checks[0].Figure != figure.Detections {
			t.Errorf("%v misses: %s, %+v; want %s", misses, got.Verdict, got.Checks, want)
		}
	}
}

// A quarter of the values in which an engine is off fails it, whatever the figures over all values are.
func TestJudgeQuarters(t *testing.T) {
	t.Parallel()
	output := info("price", tensor.Float32, 1)
	output.Kind = validators.KindValue
	spread := []string{figure.SNR, figure.Systematic, figure.Close}
	quarters := func(worst float64) *tensor.Quarters {
		return &tensor.Quarters{Channel: -1, All: [4]tensor.Quarter{{From: 4, To: 60, Relative: 0.37, Error: worst}, {}, {}, {}}}
	}
	for name, c := range map[string]struct {
		quarters *tensor.Quarters
		want     evidence.Verdict
		checks   int
	}{
		"none":     {nil, evidence.VerdictPass, 0},
		"small":    {quarters(0.2), evidence.VerdictPass, 1},
		"large":    {quarters(0.3), evidence.VerdictFail, 1},
		"infinite": {quarters(math.Inf(1)), evidence.VerdictFail, 1},
	} {
		r := tensor.Result{Cases: 400, FullCases: 400, Elements: 400, Float: true, SpreadSNR: 40, Quarters: c.quarters}
		if c.quarters != nil { // the errors of the largest values, which the quarters are judged in place of
			r.SpreadSNR, r.MaxError, r.CaseError, r.Systematic, r.FarCases = 5, 3.7, 3.7, 1, 300
		}
		got := judgeOne(t, output, r)
		checks := slices.DeleteFunc(slices.Clone(got.Checks), func(c evidence.Check) bool { return c.Figure != figure.QuarterError })
		bySpread := slices.ContainsFunc(got.Checks, func(c evidence.Check) bool { return slices.Contains(spread, c.Figure) })
		if got.Verdict != c.want || len(checks) != c.checks || bySpread == (c.quarters != nil) {
			t.Errorf("%s: %s, %+v; want %s", name, got.Verdict, got.Checks, c.want)
		}
		if r.MaxError = 3.8; c.quarters != nil && judgeOne(t, output, r).Verdict != evidence.VerdictFail {
			t.Errorf("%s: an error beyond the loose limit passes", name)
		}
		if c.want == evidence.VerdictFail && !hasReason(got, "from 4 to 60, where values are off by 37 % on average") {
			t.Errorf("%s: %v", name, got.Reasons)
		}
	}
}

// A group of cases with always the same answer fails an engine.
func TestJudgeGroups(t *testing.T) {
	t.Parallel()
	output := info("risk", tensor.Float32, 1)
	output.Kind = validators.KindProbability
	lost := tensor.LostGroup{By: "merchant", Value: "7", Cases: 14, Index: -1}
	for name, c := range map[string]struct {
		groups *tensor.Groups
		want   evidence.Verdict
		checks int
		says   string
	}{
		"nobody looked":   {nil, evidence.VerdictPass, 0, ""},
		"none that count": {&tensor.Groups{By: []string{"merchant"}}, evidence.VerdictPass, 0, ""},
		"none lost":       {&tensor.Groups{By: []string{"merchant"}, Count: 9}, evidence.VerdictPass, 1, ""},
		"one lost": {&tensor.Groups{By: []string{"merchant"}, Count: 9, Lost: 1, Worst: lost}, evidence.VerdictFail, 1,
			"output risk: in the 14 cases with merchant = 7 the reference's answers vary, and the engine always gives the same"},
		"more lost": {&tensor.Groups{By: []string{"merchant"}, Count: 9, Lost: 3, Worst: lost}, evidence.VerdictFail, 1,
			"always gives the same; so it does in 2 other groups"},
	} {
		got := judgeOne(t, output, tensor.Result{Cases: 400, FullCases: 400, Elements: 400, Float: true, SpreadSNR: 40, Groups: c.groups})
		checks := slices.DeleteFunc(slices.Clone(got.Checks), func(c evidence.Check) bool { return c.Figure != figure.Groups })
		if got.Verdict != c.want || len(checks) != c.checks || c.says != "" && !hasReason(got, c.says) {
			t.Errorf("%s: %s, %+v, %v; want %s", name, got.Verdict, checks, got.Reasons, c.want)
		}
	}
}

// hasReason reports whether a reason has a text in it.
func hasReason(j validators.Judgement, text string) bool {
	return slices.ContainsFunc(j.Reasons, func(r evidence.Reason) bool { return strings.Contains(r.Message, text) })
}

// A spec that has a limit of its own on errors relative to the spread of all values keeps it, beside the quarters.
func TestQuartersBesideLimits(t *testing.T) {
	t.Parallel()
	output := info("price", tensor.Float32, 1)
	output.Kind = validators.KindValue
	for name, c := range map[string]struct {
		own   validators.OutputLimits
		alone bool
	}{
		"nothing":          {validators.OutputLimits{}, true},
		"snr":              {validators.OutputLimits{SNRdB: &validators.AtLeast{Min: 20}}, false},
		"close":            {validators.OutputLimits{Close: &validators.AtLeast{Min: 0.5}}, false},
		"the quarters":     {validators.OutputLimits{QuarterError: &validators.AtMost{Max: 0.1}}, true},
		"the largest, too": {validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}}, true},
	} {
		limits, err := validators.ExpandPreset("", validators.Interface{Outputs: []validators.TensorInfo{output}}, []string{"int8"}, 400,
			validators.LimitOverrides{Outputs: map[string]validators.OutputLimits{"price": c.own}})
		if got := limits.Precisions["int8"].Outputs["price"].QuartersAlone; err != nil || got != c.alone {
			t.Errorf("%s: quarters alone %t (%v), want %t", name, got, err, c.alone)
		}
	}
}

// Few probabilities that are far from the rest are what the model is for: they do not make the errors of the others look large.
func TestRareProbabilities(t *testing.T) {
	t.Parallel()
	for kind, want := range map[validators.Kind]evidence.Verdict{validators.KindProbability: evidence.VerdictPass, validators.KindValue: evidence.VerdictFail} {
		output := info("prob", tensor.Float32, 1)
		output.Kind = kind
		limited, err := validators.DefaultLimits("int8", output, 400)
		if err != nil {
			t.Fatal(err)
		}
		c := tensor.NewComparison(limited.Comparison(output))
		for i := range 400 {
			p := 0.002 + 0.002*float32(i%3)
			if i%40 == 0 {
				p = 0.9
			}
			reference, errWant := tensor.New([]float32{p}, 1)
			engine, errGot := tensor.New([]float32{p + 0.008*float32(i%2)}, 1)
			if errWant != nil || errGot != nil || c.Add(i, reference, engine) != nil {
				t.Fatal(errWant, errGot)
			}
		}
		if got := judgeOne(t, output, c.Result()); got.Verdict != want {
			t.Errorf("%s: %s, %+v; want %s", kind, got.Verdict, got.Found, want)
		}
	}
}

// The reason about a bias names which value is off, in which direction, and by how much.
func TestReasonsNameTheBias(t *testing.T) {
	t.Parallel()
	output := info("logits", tensor.Float32, 3)
	output.Kind = validators.KindScores
	limited, err := validators.DefaultLimits("int8", output, 300)
	if err != nil {
		t.Fatal(err)
	}
	for want, off := range map[string][4]float32{ // offsets of the three, and a factor
		"; value 2 of each row: 3.98 too low on average": {0, 0, -4, 1}, "; all values: ": {2, 2, 2, 1}, "scaled or bent": {0, 0, 0, 0.5},
	} {
		c := tensor.NewComparison(limited.Comparison(output))
		for i := range 300 {
			var reference, engine []float32
			for at := range 3 {
				v := float32((i*7+at*13)%29) - 14
				reference, engine = append(reference, v), append(engine, off[3]*v+off[at]+0.01*float32(i%5))
			}
			r, errWant := tensor.New(reference, 3)
			e, errGot := tensor.New(engine, 3)
			if errWant != nil || errGot != nil || c.Add(i, r, e) != nil {
				t.Fatal(errWant, errGot)
			}
		}
		got := judgeOne(t, output, c.Result())
		if !slices.ContainsFunc(got.Found, func(f validators.Finding) bool {
			return f.Reason.Figure == figure.Systematic && strings.Contains(f.Reason.Message, want)
		}) {
			t.Errorf("%+v, want a reason with %q", got.Found, want)
		}
	}
}
