package validators_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// values are the figures of a metric of values on cases whose errors are normal, the engine's a
// tenth larger.
func values(t *testing.T, metric string, cases int) accuracy.Figures {
	t.Helper()
	m, err := accuracy.Find(metric)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	reference, engine, labels := make([]float64, cases), make([]float64, cases), make([]float64, cases)
	for i := range cases {
		d := r.NormFloat64()
		labels[i], reference[i], engine[i] = 5*d, 5*d+d, 5*d+1.1*d+0.01*r.NormFloat64()
	}
	c := accuracy.NewCounter(m, false, 3)
	tensors := make([]tensor.Tensor, 3)
	for i, v := range [][]float64{reference, engine, labels} {
		if tensors[i], err = tensor.New(v, int64(cases)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(tensors[0], tensors[1], tensors[2]); err != nil {
		t.Fatal(err)
	}
	return *c.Figures()
}

func judgedFigures(limit validators.AccuracyLimit, f accuracy.Figures) (validators.Judgement, evidence.ParityReport) {
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
	limits.Accuracy = &limit
	a := f.Accuracy()
	n := len(f.Engine.Each)
	result := equalResult(n)
	measured := validators.Measured{Outputs: map[string]tensor.Result{"logits": result},
		Accuracy: &a, Figures: &f, Current: &a, CurrentFigures: &f, Cases: n}
	j := limits.Judge("fp32", measured)
	report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: j.Verdict, Reasons: j.Reasons},
		Cases: evidence.CasesRun{Count: n, Ran: n}, Outputs: map[string]evidence.OutputFigures{"logits": {}},
		Accuracy: &a, Current: &evidence.CurrentAccuracy{Accuracy: a}, Rules: limits.V, Confidence: evidence.Figure(j.Confidence), Attempts: 1, Checks: slices.Concat(j.Checks, goldenCompared())}
	return j, report
}

// A limit on a figure holds at its worse bound and not beyond, fails beyond its better bound, and is
// not decided between. A report that is judged again says the same.
func TestFiguresAtTheLimits(t *testing.T) {
	t.Parallel()
	above := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	below := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	for _, name := range []string{"mae", "rmse", "r2"} {
		f := values(t, name, 100)
		absolute, drop, relative := f.Absolute(0.95), f.Drop(0.95), f.Relative(0.95)
		most := func(set func(a *validators.AccuracyLimit, l *validators.AtMost)) func(v float64) validators.AccuracyLimit {
			return func(v float64) validators.AccuracyLimit {
				a := validators.AccuracyLimit{Metric: name}
				set(&a, &validators.AtMost{Max: v})
				return a
			}
		}
		least := func(set func(a *validators.AccuracyLimit, l *validators.AtLeast)) func(v float64) validators.AccuracyLimit {
			return func(v float64) validators.AccuracyLimit {
				a := validators.AccuracyLimit{Metric: name}
				set(&a, &validators.AtLeast{Min: v})
				return a
			}
		}
		for what, c := range map[string]struct {
			limit         func(v float64) validators.AccuracyLimit
			worse, better float64
			atLeast, skip bool
		}{
			"max":        {most(func(a *validators.AccuracyLimit, l *validators.AtMost) { a.Max = l }), absolute.High, absolute.Low, false, name == "r2"},
			"min":        {least(func(a *validators.AccuracyLimit, l *validators.AtLeast) { a.Min = l }), absolute.Low, absolute.High, true, name != "r2"},
			"drop":       {most(func(a *validators.AccuracyLimit, l *validators.AtMost) { a.Drop = l }), drop.High, drop.Low, false, false},
			"regression": {most(func(a *validators.AccuracyLimit, l *validators.AtMost) { a.Regression = l }), drop.High, drop.Low, false, false},
			"relative":   {least(func(a *validators.AccuracyLimit, l *validators.AtLeast) { a.Relative = l }), relative.Low, relative.High, true, false},
		} {
			if c.skip {
				continue
			}
			stricter := below
			if c.atLeast {
				stricter = above
			}
			for limit, want := range map[float64]evidence.Verdict{c.worse: evidence.VerdictPass, stricter(c.worse): evidence.VerdictUndecided,
				c.better: evidence.VerdictUndecided, stricter(c.better): evidence.VerdictFail} {
				j, report := judgedFigures(c.limit(limit), f)
				if j.Verdict != want {
					t.Errorf("%s, %s %v with bounds %v and %v: %s, %+v; want %s", name, what, limit, c.worse, c.better, j.Verdict, j.Reasons, want)
				}
				again, err := validators.Rejudge(report)
				if err != nil || again.Verdict != want || len(again.Differences) > 0 || again.Taken != 1 {
					t.Errorf("%s, %s judged again: %+v, %v; want %s", name, what, again, err, want)
				}
			}
		}
	}
}

// A loss against the reference is told in percent of it, and other amounts in the unit of the metric.
func TestAmountsOfFigures(t *testing.T) {
	t.Parallel()
	most, least := &validators.AtMost{Max: 0.001}, &validators.AtLeast{Min: 0.9999}
	for name, c := range map[string]struct {
		limit validators.AccuracyLimit
		says  string
	}{
		"at most":             {validators.AccuracyLimit{Metric: "mae", Max: most}, "; the limit is 0.001"},
		"rise of an error":    {validators.AccuracyLimit{Metric: "mae", Drop: most}, "; the limit is 0.1 %"},
		"at least":            {validators.AccuracyLimit{Metric: "r2", Min: least}, "; the limit is 0.9999"},
		"drop of a score":     {validators.AccuracyLimit{Metric: "r2", Drop: most}, "; the limit is 0.001"},
		"share of an error":   {validators.AccuracyLimit{Metric: "mae", Relative: least}, "; the limit is 99.99 %"},
		"share of a score":    {validators.AccuracyLimit{Metric: "r2", Relative: least}, "; the limit is 99.99 %"},
		"rise beside another": {validators.AccuracyLimit{Metric: "mae", Regression: most}, "; the limit is 0.1 %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, _ := judgedFigures(c.limit, values(t, c.limit.Metric, 1000))
			if j.Verdict != evidence.VerdictFail || len(j.Reasons) != 1 || !strings.HasSuffix(j.Reasons[0].Message, c.says) {
				t.Errorf("verdict %s, %+v; want a failure that ends with %q", j.Verdict, j.Reasons, c.says)
			}
		})
	}
}

// An engine without a figure fails, and one whose reference has none is not decided.
func TestNoFigure(t *testing.T) {
	t.Parallel()
	limit := validators.AccuracyLimit{Metric: "mae", Drop: &validators.AtMost{Max: 1}}
	broken := values(t, "mae", 100)
	broken.Engine.Each[3] = math.NaN()
	if j, _ := judgedFigures(limit, broken); j.Verdict != evidence.VerdictFail || !strings.Contains(j.Reasons[0].Message, "NaN or infinite") {
		t.Errorf("an engine with NaN: %s, %+v", j.Verdict, j.Reasons)
	}
	broken = values(t, "mae", 100)
	broken.Reference.Each[3] = math.Inf(1)
	if j, _ := judgedFigures(limit, broken); j.Verdict != evidence.VerdictUndecided {
		t.Errorf("a reference without a figure: %s, %+v", j.Verdict, j.Reasons)
	}
	if j, _ := judgedFigures(limit, values(t, "mae", 7)); j.Verdict != evidence.VerdictUndecided ||
		!strings.Contains(j.Reasons[0].Message, "too few for a bound") {
		t.Errorf("seven cases: %s, %+v", j.Verdict, j.Reasons)
	}
	if j, _ := judgedFigures(validators.AccuracyLimit{Metric: "rmse", Max: &validators.AtMost{Max: 1}},
		values(t, "mae", 100)); j.Verdict != evidence.VerdictUndecided ||
		!strings.Contains(j.Reasons[0].Message, "accuracy was measured by mae, and the limit is on rmse") {
		t.Errorf("another metric: %s, %+v", j.Verdict, j.Reasons)
	}
}

// A report cannot pass off a rate as a figure of a bootstrap, whose bounds are believed.
func TestRejudgeBelievesNoBoundsOfRates(t *testing.T) {
	t.Parallel()
	report := passing(t)
	for i := range report.Checks {
		if c := &report.Checks[i]; c.Figure == "accuracy" {
			low := evidence.Figure(0.99)
			c.Resampled, c.Low, c.Limit = true, &low, new(evidence.Figure(0.98))
		}
	}
	if got, err := validators.Rejudge(report); err != nil || got.Verdict == evidence.VerdictPass || got.Taken != 0 || len(got.Differences) == 0 {
		t.Errorf("%+v, error %v; want no pass", got, err)
	}
}

// A share of the reference's accuracy is judged by its bound, at the limit itself.
func TestRelativeRate(t *testing.T) {
	t.Parallel()
	a := evidence.Accuracy{Metric: "top1", Reference: 0.9, Engine: 0.89, Lost: 9, Won: 3, Right: 534, Cases: 600, Count: 600}
	low, high := stats.PairedRatio(9, 3, 540, 600, 0.95)
	if value := 534. / 540; !(low < value && value < high) {
		t.Fatalf("bounds %v and %v: want them around %v", low, high, value)
	}
	for limit, want := range map[float64]evidence.Verdict{low: evidence.VerdictPass, math.Nextafter(low, 1): evidence.VerdictUndecided,
		high: evidence.VerdictUndecided, math.Nextafter(high, 2): evidence.VerdictFail} {
		l := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
		l.Accuracy = &validators.AccuracyLimit{Metric: "top1", Relative: &validators.AtLeast{Min: limit}}
		report := reported(l, equalResult(600), &a, 1)
		if report.Verdict != want {
			t.Errorf("limit %v: %s, %+v; want %s", limit, report.Verdict, report.Reasons, want)
		}
		if again, err := validators.Rejudge(report); err != nil || again.Verdict != want || len(again.Differences) > 0 {
			t.Errorf("limit %v judged again: %+v, %v; want %s", limit, again, err, want)
		}
	}
}

func TestProvableAccuracy(t *testing.T) {
	t.Parallel()
	with := func(a validators.AccuracyLimit) validators.Limits {
		l := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
		l.Accuracy = &a
		return l
	}
	relative := func(v float64) validators.Limits {
		return with(validators.AccuracyLimit{Metric: "top5", Relative: &validators.AtLeast{Min: v}})
	}
	rmse := with(validators.AccuracyLimit{Metric: "rmse", Drop: &validators.AtMost{Max: 0}})
	checkBound(t, relative(0.99).Provable(validators.Sample{Cases: 300}),
		"limits: accuracy.relative of 99 % cannot be proven: 300 cases without a miss prove 98.53 % with 95 % confidence, and it takes 440; use more cases")
	checkBound(t, relative(0.99).Provable(validators.Sample{Cases: 440}), "")
	checkBound(t, relative(0.99).Provable(validators.Sample{Cases: 439}), "it takes 440")
	checkBound(t, relative(1).Provable(validators.Sample{Cases: 1000}), "cannot be proven by any number of cases: ask for less")
	checkBound(t, rmse.Provable(validators.Sample{Cases: 8}), "")
	checkBound(t, rmse.Provable(validators.Sample{Cases: 7}), "limits: rmse cannot be bounded by 7 cases: it takes at least 8")
	checkBound(t, with(validators.AccuracyLimit{Metric: "f1_macro", Min: &validators.AtLeast{Min: 0.999}}).Provable(validators.Sample{Cases: 300}),
		"limits: accuracy of 99.9 % cannot be proven")
}

// Which metrics fit an output follows from its kind, type and shape.
func TestMetricsFor(t *testing.T) {
	t.Parallel()
	batch := validators.Dim{Symbol: "batch"}
	named := "exact f1_macro f1_binary "
	for name, c := range map[string]struct {
		kind  validators.Kind
		dtype tensor.DType
		shape []validators.Dim
		want  string
	}{
		"scores":           {validators.KindScores, tensor.Float32, []validators.Dim{batch, {Size: 10}}, "top1 top2 top3 top5 " + named + "perplexity"},
		"open scores":      {validators.KindScores, tensor.Float32, []validators.Dim{batch, {Symbol: "classes"}}, "top1 top2 top3 top5 top10 " + named + "auc perplexity"},
		"two scores":       {validators.KindProbability, tensor.Float32, []validators.Dim{batch, {Size: 2}}, "top1 " + named + "auc perplexity"},
		"tokens":           {validators.KindTokens, tensor.Float16, []validators.Dim{batch, {Symbol: "seq"}, {Size: 2}}, "top1 exact prefix f1_macro f1_binary miou perplexity"},
		"a token":          {validators.KindTokens, tensor.Float32, []validators.Dim{batch, {Size: 1}, {Size: 2}}, "top1 " + named + "perplexity"},
		"token numbers":    {validators.KindTokens, tensor.Int64, []validators.Dim{batch, {Symbol: "seq"}}, "top1 exact prefix f1_macro f1_binary miou"},
		"class numbers":    {validators.KindClass, tensor.Int64, []validators.Dim{batch}, "top1 exact f1_macro f1_binary"},
		"yes and no":       {validators.KindLabel, tensor.Bool, []validators.Dim{batch, {Size: 3}}, "top1 exact f1_macro f1_binary"},
		"a value":          {validators.KindValue, tensor.Float32, []validators.Dim{batch, {Size: 1}}, "auc r2 mae mape rmse"},
		"several values":   {validators.KindValue, tensor.Float32, []validators.Dim{batch, {Size: 3}}, "auc_macro mae mape rmse"},
		"counts":           {validators.KindValue, tensor.Int32, []validators.Dim{batch}, "r2 mae mape rmse"},
		"boxes":            {validators.KindBoxes, tensor.Float32, []validators.Dim{batch, {Symbol: "n"}, {Size: 4}}, "auc auc_macro r2 mae mape rmse"},
		"an embedding":     {validators.KindEmbedding, tensor.Float32, []validators.Dim{batch, {Size: 8}}, "auc_macro mae mape rmse"},
		"a mask of labels": {validators.KindMask, tensor.Uint8, []validators.Dim{batch, {Size: 8}}, "top1 exact f1_macro f1_binary miou mae mape rmse"},
		"planes":           {validators.KindMask, tensor.Float32, []validators.Dim{batch, {Size: 4}, {Size: 2}, {Size: 2}}, "top1 top2 top3 exact f1_macro f1_binary miou auc_macro mae mape rmse perplexity"},
		"a plane":          {validators.KindMask, tensor.Float32, []validators.Dim{batch, {Size: 8}}, "auc_macro mae mape rmse"},
	} {
		if got := strings.Join(validators.MetricsFor(validators.TensorInfo{Name: "y", Kind: c.kind, DType: c.dtype, Shape: c.shape}), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	expand := func(preset string, o validators.LimitOverrides) validators.Limits {
		t.Helper()
		l, err := validators.ExpandPreset(preset, digits(), []string{"int8"}, 10_000, o)
		if err != nil {
			t.Fatalf("%s: %v", preset, err)
		}
		return l
	}
	ordinary, strict := expand("default", validators.LimitOverrides{}), expand("strict", validators.LimitOverrides{})
	d, s := ordinary.Precisions["int8"].Outputs["logits"], strict.Precisions["int8"].Outputs["logits"]
	if s.SNRdB.Min != d.SNRdB.Min+6 || s.MaxError.Max != d.MaxError.Max/2 || s.CaseError.Max != d.CaseError.Max/2 ||
		s.Systematic.Max != d.Systematic.Max/2 || s.Top1.Min != (1+d.Top1.Min)/2 {
		t.Errorf("strict %+v, want half of what default allows: %+v", s, d)
	}
	if ordinary.Accuracy != nil || strict.Accuracy != nil {
		t.Errorf("accuracy %+v and %+v, want none", ordinary.Accuracy, strict.Accuracy)
	}
	for preset, least := range map[string]float64{"mlperf-99": 0.99, "mlperf-99.9": 0.999} {
		if a := expand(preset, validators.LimitOverrides{}).Accuracy; a == nil || a.Metric != "top1" || a.Relative.Min != least || a.Drop != nil {
			t.Errorf("%s: accuracy %+v, want %v of the reference's top1", preset, a, least)
		}
		own := validators.LimitOverrides{Accuracy: &validators.AccuracyLimit{Metric: "f1_macro", Drop: &validators.AtMost{Max: 0.1}}}
		if a := expand(preset, own).Accuracy; a.Metric != "f1_macro" || a.Relative.Min != least || a.Drop.Max != 0.1 || own.Accuracy.Relative != nil {
			t.Errorf("%s: accuracy %+v, want the metric and the drop of the spec", preset, a)
		}
		own.Accuracy.Relative = &validators.AtLeast{Min: 0.5}
		if a := expand(preset, own).Accuracy; a.Relative.Min != 0.5 {
			t.Errorf("%s: accuracy %+v, want the share of the spec", preset, a)
		}
	}
	// What the page says of how many cases it takes is at its end.
	for cases, preset := range map[int]string{440: "mlperf-99", 4384: "mlperf-99.9"} {
		l := expand(preset, validators.LimitOverrides{})
		checkBound(t, l.Provable(validators.Sample{Cases: cases}), "")
		checkBound(t, l.Provable(validators.Sample{Cases: cases - 1}), "accuracy.relative of")
	}
	none := digits()
	none.Outputs = []validators.TensorInfo{{Name: "y", DType: tensor.Float32,
		Kind: validators.KindEmbedding, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 8}}}}
	_, err := validators.ExpandPreset("mlperf-99", none, []string{"fp32"}, 500, validators.LimitOverrides{})
	checkInvalid(t, "no metric", err, "limits.preset mlperf-99 asks for accuracy, and no output says by which metric")
	_, err = validators.ExpandPreset("mlperf", digits(), []string{"fp32"}, 500, validators.LimitOverrides{})
	checkInvalid(t, "no preset", err, `limits preset "mlperf": want strict, default, mlperf-99, mlperf-99.9`)
}

// A slice needs as many cases as its own limits take, whatever the limits on all cases are.
func TestProvableSlice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric string
		slices *validators.SliceLimit
		cases  int
		want   string
	}{
		"no slices":              {"top1", nil, 1, ""},
		"slices without limits":  {"top1", &validators.SliceLimit{By: "region"}, 1, ""},
		"enough for a rate":      {"top1", &validators.SliceLimit{By: "region", Min: &validators.AtLeast{Min: 0.99}}, 299, ""},
		"too few for a rate":     {"top1", &validators.SliceLimit{By: "region", Min: &validators.AtLeast{Min: 0.99}}, 298, "cannot be proven"},
		"too few for a drop":     {"top1", &validators.SliceLimit{By: "region", Drop: &validators.AtMost{Max: 0.001}}, 8, "cannot be proven"},
		"enough for an error":    {"rmse", &validators.SliceLimit{By: "region", Max: &validators.AtMost{Max: 1}}, 8, ""},
		"too few for an error":   {"rmse", &validators.SliceLimit{By: "region", Max: &validators.AtMost{Max: 1}}, 7, "cannot be bounded by 7 cases"},
		"too few for a rise":     {"rmse", &validators.SliceLimit{By: "region", Drop: &validators.AtMost{Max: 1}}, 7, "cannot be bounded by 7 cases"},
		"an error without limit": {"rmse", &validators.SliceLimit{By: "region"}, 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
			limits.Accuracy = &validators.AccuracyLimit{Metric: c.metric, Slices: c.slices}
			if got := limits.UnprovenSlice(validators.Sample{Cases: c.cases}); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
