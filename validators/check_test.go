package validators_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// limits2 is limits with these for the only output.
func limits2(o validators.OutputLimits) validators.Limits {
	l := judged(o)
	l.V, l.MinCases, l.Confidence = validators.LimitsVersion, 1, 0.95
	return l
}

// Limits that must hold for every case: a figure at the limit passes, the next one beyond fails, and so does NaN.
func TestChecksAtTheLimits(t *testing.T) {
	t.Parallel()
	half, below, above := 0.5, math.Nextafter(0.5, 0), math.Nextafter(0.5, 1)
	least, most := &validators.AtLeast{Min: half}, &validators.AtMost{Max: half}
	nan := math.NaN()
	for figure, c := range map[string]struct {
		limits  validators.OutputLimits
		set     func(r *tensor.Result, v float64)
		beyond  float64
		provesN bool // that the limit holds on every case says something of other inputs
	}{
		"cosine":    {validators.OutputLimits{Cosine: least}, func(r *tensor.Result, v float64) { r.CosineMin = v }, below, true},
		"snrDb":     {validators.OutputLimits{SNRdB: least}, func(r *tensor.Result, v float64) { r.SpreadSNR = v }, below, false},
		"maxAbs":    {validators.OutputLimits{MaxAbs: most}, func(r *tensor.Result, v float64) { r.MaxAbs = v }, above, true},
		"maxError":  {validators.OutputLimits{MaxError: most}, func(r *tensor.Result, v float64) { r.MaxError = v }, above, true},
		"caseError": {validators.OutputLimits{CaseError: most}, func(r *tensor.Result, v float64) { r.CaseError = v }, above, true},

		"systematic": {validators.OutputLimits{Systematic: most}, func(r *tensor.Result, v float64) { r.Systematic = v }, above, false},
	} {
		for value, want := range map[*float64]evidence.Verdict{&half: evidence.VerdictPass, &c.beyond: evidence.VerdictFail, &nan: evidence.VerdictFail} {
			result := equalResult(59)
			c.set(&result, *value)
			got := limits2(c.limits).Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 59})
			if got.Verdict != want || len(got.Checks) != 1 || got.Checks[0].Verdict != want || got.Checks[0].Figure != figure {
				t.Fatalf("%s of %v: %+v, want %s", figure, *value, got, want)
			}
			proves := got.Checks[0].Proves
			if (proves != nil) != (c.provesN && want == evidence.VerdictPass) || proves != nil && math.Abs(float64(*proves)-0.0495) > 0.0005 {
				t.Errorf("%s of %v proves %v, want 5 %% if it passes", figure, *value, proves)
			}
		}
	}
}

// A limit on a rate passes by the bound that the cases prove, fails by the other, and else is not decided.
func TestRatesByTheirBounds(t *testing.T) {
	t.Parallel()
	top1 := validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.99}}
	equal := validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.99}}
	for name, c := range map[string]struct {
		limits   validators.OutputLimits
		misses   float64
		cases    int
		attempts int
		want     evidence.Verdict
		says     string
	}{
		"298 cases without a miss":        {top1, 0, 298, 0, evidence.VerdictUndecided, "about 300 cases like these would prove it"},
		"299 cases without a miss":        {top1, 0, 299, 0, evidence.VerdictPass, ""},
		"299 cases without a miss, again": {top1, 0, 299, 2, evidence.VerdictUndecided, "97.5 % confidence"},
		"368 cases without a miss, again": {top1, 0, 368, 2, evidence.VerdictPass, ""},
		"one case":                        {top1, 0, 1, 0, evidence.VerdictUndecided, "top1 is 100 % in 1 case, which proves 5 % with 95 % confidence, and the limit is 99 %"},
		"one miss in 130 cases":           {top1, 1, 130, 0, evidence.VerdictUndecided, "about 5,300 cases like these would prove it"},
		"two misses in 205 cases":         {top1, 2, 205, 0, evidence.VerdictUndecided, "it would take about 450,000 cases like these, which is not practical: ask for less, or improve the engine"},
		"half a miss in 299 cases":        {top1, 0.5, 299, 0, evidence.VerdictUndecided, "top1 is 99.83 %"},
		"as many misses as allowed":       {top1, 3, 300, 0, evidence.VerdictUndecided, "no number of cases like these would prove it: ask for less, or improve the engine"},
		"seven misses in 300":             {top1, 7, 300, 0, evidence.VerdictFail, "with 95 % confidence at most 98.9"},
		"six misses in 300":               {top1, 6, 300, 0, evidence.VerdictUndecided, "no number of cases like these would prove it"},
		"other class numbers":             {equal, 30, 300, 0, evidence.VerdictFail, "equal is 90 %"},
		"the same class numbers":          {equal, 0, 299, 0, evidence.VerdictPass, ""},
		"rows that cannot be ranked":      {top1, math.NaN(), 299, 0, evidence.VerdictFail, "no rows of two or more values"},
		"no limit":                        {validators.OutputLimits{Top1: &validators.AtLeast{}, MaxAbs: &validators.AtMost{}}, 299, 299, 0, evidence.VerdictPass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := equalResult(c.cases)
			result.Top1Misses, result.EqualMisses = c.misses, c.misses
			if math.IsNaN(c.misses) {
				result.Top1Rows = 0
			}
			got := limits2(c.limits).Judge("fp32",
				validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: c.cases, Attempts: c.attempts})
			said := ""
			if len(got.Reasons) > 0 {
				said = got.Reasons[0].Message
			}
			if got.Verdict != c.want || !strings.Contains(said, c.says) || (c.want == evidence.VerdictPass) != (said == "") {
				t.Errorf("verdict %s, %q; want %s, %q", got.Verdict, said, c.want, c.says)
			}
		})
	}
}

// A limit that equals the proven bound passes, and one that equals the other bound is not exceeded.
func TestLimitsAtTheBounds(t *testing.T) {
	t.Parallel()
	low, high := 1-stats.UpperRate(6, 300, 0.95), 1-stats.LowerRate(6, 300, 0.95)
	least, most := stats.PairedDrop(12, 1, 300, 0.95)
	up, down := func(v float64) float64 { return math.Nextafter(v, 2) }, func(v float64) float64 { return math.Nextafter(v, -2) }
	rate := func(limits validators.OutputLimits) evidence.Verdict {
		result := equalResult(300)
		result.Top1Misses, result.EqualMisses = 6, 6
		return limits2(limits).Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 300}).Verdict
	}
	top1 := func(v float64) evidence.Verdict {
		return rate(validators.OutputLimits{Top1: &validators.AtLeast{Min: v}})
	}
	equal := func(v float64) evidence.Verdict {
		return rate(validators.OutputLimits{Equal: &validators.AtLeast{Min: v}})
	}
	accuracy := func(limit validators.AccuracyLimit) evidence.Verdict {
		limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
		limit.Metric = "top1"
		limits.Accuracy = &limit
		return limits.Judge("fp32", validators.Measured{Cases: 300, Outputs: map[string]tensor.Result{"logits": equalResult(300)},
			Accuracy: &evidence.Accuracy{Metric: "top1", Reference: 0.9, Lost: 12, Won: 1, Right: 250, Cases: 300, Count: 300}}).Verdict
	}
	drop := func(v float64) evidence.Verdict {
		return accuracy(validators.AccuracyLimit{Drop: &validators.AtMost{Max: v}})
	}
	lowRatio, highRatio := stats.PairedRatio(12, 1, 261, 300, 0.95)
	relative := func(v float64) evidence.Verdict {
		return accuracy(validators.AccuracyLimit{Relative: &validators.AtLeast{Min: v}})
	}
	for name, c := range map[string]struct {
		judge func(limit float64) evidence.Verdict
		limit float64
		want  evidence.Verdict
	}{
		"top1, as proven":          {top1, low, evidence.VerdictPass},
		"top1, more than proven":   {top1, up(low), evidence.VerdictUndecided},
		"top1, as much as may be":  {top1, high, evidence.VerdictUndecided},
		"top1, more than can be":   {top1, up(high), evidence.VerdictFail},
		"equal, as proven":         {equal, low, evidence.VerdictPass},
		"equal, more than can be":  {equal, up(high), evidence.VerdictFail},
		"drop, as proven":          {drop, most, evidence.VerdictPass},
		"drop, less than proven":   {drop, down(most), evidence.VerdictUndecided},
		"drop, as little as it is": {drop, least, evidence.VerdictUndecided},
		"drop, less than it is":    {drop, down(least), evidence.VerdictFail},

		"relative, as proven":         {relative, lowRatio, evidence.VerdictPass},
		"relative, more than proven":  {relative, up(lowRatio), evidence.VerdictUndecided},
		"relative, as much as may be": {relative, highRatio, evidence.VerdictUndecided},
		"relative, more than can be":  {relative, up(highRatio), evidence.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.judge(c.limit); got != c.want {
				t.Errorf("limit %v: verdict %s, want %s", c.limit, got, c.want)
			}
		})
	}
}

// A drop of accuracy is judged by the answers that only one side has right, an engine's accuracy by its own.
func TestAccuracyByItsBounds(t *testing.T) {
	t.Parallel()
	measured := func(lost, won, right evidence.Figure) *evidence.Accuracy {
		return &evidence.Accuracy{Metric: "top1", Reference: 0.9, Engine: right / 600, Lost: lost, Won: won, Right: right, Cases: 600, Count: 600}
	}
	drop := func(most float64) *validators.AccuracyLimit {
		return &validators.AccuracyLimit{Metric: "top1", Drop: &validators.AtMost{Max: most}}
	}
	least := &validators.AccuracyLimit{Metric: "top1", Min: &validators.AtLeast{Min: 0.9}}
	_, exact := stats.PairedDrop(4, 1, 600, 0.95)
	regression := &validators.AccuracyLimit{Metric: "top1", Regression: &validators.AtMost{Max: exact}}
	for name, c := range map[string]struct {
		limit    *validators.AccuracyLimit
		measured *evidence.Accuracy
		want     evidence.Verdict
		says     string
		current  *evidence.Accuracy
		fault    string
	}{
		"no answer differs, 2 %":         {limit: drop(0.02), measured: measured(0, 0, 540), want: evidence.VerdictPass, says: ""},
		"no answer differs, 0.5 %":       {limit: drop(0.005), measured: measured(0, 0, 540), want: evidence.VerdictUndecided, says: "and the limit is 0.50"},
		"at the bound":                   {limit: drop(exact), measured: measured(4, 1, 537), want: evidence.VerdictPass, says: ""},
		"before the bound":               {limit: drop(math.Nextafter(exact, 0)), measured: measured(4, 1, 537), want: evidence.VerdictUndecided, says: "a drop of 0.50 points in 600 cases"},
		"parts of an answer":             {limit: drop(exact), measured: measured(4.01, 1.9, 537), want: evidence.VerdictUndecided, says: ""},
		"as many won as lost":            {limit: drop(0.02), measured: measured(60, 60, 540), want: evidence.VerdictUndecided, says: "cases like these would prove it"},
		"far more wrong":                 {limit: drop(0.02), measured: measured(60, 0, 480), want: evidence.VerdictFail, says: "with 95 % confidence at least"},
		"no labels":                      {limit: drop(0.02), measured: nil, want: evidence.VerdictUndecided, says: "the cases have no labels"},
		"no answers":                     {limit: least, measured: &evidence.Accuracy{Metric: "top1"}, want: evidence.VerdictUndecided, says: "the cases have no labels"},
		"accurate enough":                {limit: least, measured: measured(0, 0, 560), want: evidence.VerdictPass, says: ""},
		"as accurate as asked for":       {limit: least, measured: measured(0, 0, 540), want: evidence.VerdictUndecided, says: "accuracy is 90 % in 600 cases"},
		"less accurate than allowed":     {limit: least, measured: measured(0, 0, 500), want: evidence.VerdictFail, says: "accuracy is 83.33 % in 600 cases"},
		"no worse than the engine there": {limit: regression, measured: measured(60, 0, 480), want: evidence.VerdictPass, current: measured(4, 1, 480)},
		"worse than the engine there":    {limit: regression, measured: measured(0, 0, 540), want: evidence.VerdictFail, current: measured(60, 0, 480), says: "that of the engine there now is"},
		"perhaps worse":                  {limit: regression, measured: measured(0, 0, 540), want: evidence.VerdictUndecided, current: measured(5, 1, 540), says: "and the limit is"},
		"no engine there":                {limit: regression, measured: measured(60, 0, 480), want: evidence.VerdictPass},
		"an engine that does not run": {limit: regression, measured: measured(0, 0, 540),
			want: evidence.VerdictUndecided, fault: "it has other inputs", says: "is not known: it has other inputs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
			limits.Accuracy = c.limit
			got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": equalResult(600)}, Accuracy: c.measured,
				Current: c.current, CurrentFault: c.fault, Cases: 600})
			said := ""
			if len(got.Reasons) > 0 {
				said = got.Reasons[0].Message
			}
			if got.Verdict != c.want || !strings.Contains(said, c.says) {
				t.Errorf("verdict %s, %q; want %s, %q", got.Verdict, said, c.want, c.says)
			}
		})
	}
}

// What fails is a failure whatever else could not be decided.
func TestFailureBeforeUndecided(t *testing.T) {
	t.Parallel()
	result := equalResult(10)
	result.MaxError = 2
	limits := limits2(validators.OutputLimits{MaxError: &validators.AtMost{Max: 1}, Top1: &validators.AtLeast{Min: 0.99}})
	got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 10})
	if got.Verdict != evidence.VerdictFail || len(got.Reasons) != 2 || len(got.Checks) != 2 {
		t.Errorf("%+v, want a failure with both reasons", got)
	}
}

// Limits that no result of the cases can prove are refused before anything runs.
func TestProvable(t *testing.T) {
	t.Parallel()
	with := func(o validators.OutputLimits, a *validators.AccuracyLimit) validators.Limits {
		l := limits2(o)
		l.Accuracy = a
		return l
	}
	top1 := func(least float64) validators.OutputLimits {
		return validators.OutputLimits{Top1: &validators.AtLeast{Min: least}}
	}
	none := validators.OutputLimits{MaxAbs: &validators.AtMost{}}
	drop := func(most float64) *validators.AccuracyLimit {
		return &validators.AccuracyLimit{Metric: "top1", Drop: &validators.AtMost{Max: most}}
	}
	for name, c := range map[string]struct {
		limits validators.Limits
		cases  int
		want   string
	}{
		"299 cases":         {with(top1(0.99), nil), 299, ""},
		"298 cases":         {with(top1(0.99), nil), 298, "298 cases without a miss prove 98.99"},
		"too few":           {with(top1(0.995), nil), 300, "and it takes 598"},
		"all of them":       {with(top1(1), nil), 300, "cannot be proven by any number of cases: ask for less, such as 99 %"},
		"nothing asked for": {with(top1(0), nil), 1, ""},
		"equal":             {with(validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.999}}, nil), 300, "it takes 2995"},
		"drop":              {with(none, drop(0.02)), 600, ""},
		"a smaller drop":    {with(none, drop(0.005)), 360, "a drop of accuracy of at most 0.5 % cannot be proven: 360 cases without a difference prove 1.019 %"},
		"no drop at all":    {with(none, drop(0)), 600, "cannot be proven by any number of cases: allow more, such as 0.7 %"},
		"accuracy":          {with(none, &validators.AccuracyLimit{Metric: "top1", Min: &validators.AtLeast{Min: 0.999}}), 600, "limits: accuracy of 99.9 % cannot be proven"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBound(t, c.limits.Provable(validators.Sample{Cases: c.cases}), c.want)
		})
	}
}

// The limits of the preset can be proven, also when one case of an engine differs that is right.
func TestDefaultsAreProvable(t *testing.T) {
	t.Parallel()
	for _, cases := range []int{1, 2, 9, 10, 16, 59, 100, 300, 600, 5000} {
		limits, err := validators.ExpandPreset("", digits(), validators.Precisions(), cases, validators.LimitOverrides{})
		if err != nil {
			t.Fatal(err)
		}
		if err := limits.Provable(validators.Sample{Cases: cases}); err != nil {
			t.Errorf("%d cases: %v", cases, err)
		}
		result := equalResult(cases)
		if cases >= 10 {
			result.Top1Misses, result.EqualMisses = 1, 1
		}
		for _, precision := range validators.Precisions() {
			got := limits.Judge(precision, validators.Measured{Outputs: map[string]tensor.Result{"logits": result, "best": result}, Cases: cases})
			if got.Verdict != evidence.VerdictPass {
				t.Errorf("%s on %d cases: %s, %+v, want a pass", precision, cases, got.Verdict, got.Reasons)
			}
		}
	}
}

// rightFigures are those of a metric for a reference and an engine that give the labels.
func rightFigures(t *testing.T, metric string, labels tensor.Tensor) *accuracy.Figures {
	t.Helper()
	m, err := accuracy.Find(metric)
	if err != nil {
		t.Fatal(err)
	}
	counter := accuracy.NewCounter(m, false, 1)
	if err := counter.AddRight(labels); err != nil {
		t.Fatal(err)
	}
	return counter.Figures()
}

// every is labels of which each nth is 1.
func every(t *testing.T, nth, cases int) tensor.Tensor {
	t.Helper()
	labels := make([]int64, cases)
	for i := range labels {
		if i%nth == 0 {
			labels[i] = 1
		}
	}
	return tensorOf(t, labels)
}

// Before a build, limits on what is lost are judged by the rule of the verdict, with labels as answers: what it takes depends on the rarest class.
func TestUnproven(t *testing.T) {
	t.Parallel()
	l := limits2(validators.OutputLimits{})
	l.Accuracy = &validators.AccuracyLimit{Metric: "auc", Drop: &validators.AtMost{Max: 0.01}}
	if p := l.Proof(1500); p == nil || p.Drop != 0 || p.Rate == 0 {
		t.Errorf("proof %+v, want a rate and no drop", p)
	}
	labels := every(t, 34, 1373)
	s := validators.Sample{Cases: 1373, Floats: true, Right: rightFigures(t, "auc", labels)}
	want := "a drop of auc of at most 1 % cannot be proven: 1373 cases without a difference, 41 of class 1, prove 8.9"
	takes := "it takes about 369 of class 1; use more cases, or allow more; an engine passes only if no bit of its float outputs differs"
	if got := l.Unproven(s); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, takes) || l.Provable(s) != nil {
		t.Errorf("%q, %v, want %q ... %q and no refusal", got, l.Provable(s), want, takes)
	}
	m, _ := accuracy.Find("auc")
	if got := s.LeastDrop(m, l.Confidence); math.Abs(got-0.0896) > 1e-3 {
		t.Errorf("the least drop is %v, want about 9 %%", got)
	}
	for metric, least := range map[string]float64{"auc": 0.03, "f1_macro": 0.03, "f1_binary": 0.03, "miou": 0.03, "prefix": 0.003} {
		of := every(t, 12, 1200)
		if metric == "miou" { // two places in each case
			of, _ = tensor.New(append(of.Float64s(), of.Float64s()...), 1200, 2)
			of = tensor.Tensor{DType: tensor.Int8, Shape: of.Shape, Data: bytesOf(of.Float64s())}
		}
		right := rightFigures(t, metric, of)
		l.Accuracy = &validators.AccuracyLimit{Metric: metric, Drop: &validators.AtMost{Max: least}}
		s := validators.Sample{Cases: 1200, Right: right}
		measured := right.Accuracy()
		judged := l.Judge("fp32", validators.Measured{Cases: 1200, Accuracy: &measured, Figures: right})
		passes := slices.ContainsFunc(judged.Checks, func(c evidence.Check) bool { return c.Figure == "drop" && c.Verdict == evidence.VerdictPass })
		if proven := l.Unproven(s) == "" && l.Provable(s) == nil; proven != passes {
			t.Errorf("%s: plan says %t (%s), and the verdict %t", metric, proven, l.Unproven(s), passes)
		}
	}
}

func bytesOf(values []float64) []byte {
	out := make([]byte, len(values))
	for i, v := range values {
		out[i] = byte(v)
	}
	return out
}

// A verdict that more cases would decide says which ones.
func TestUndecidedByTheRarestClass(t *testing.T) {
	t.Parallel()
	f := rightFigures(t, accuracy.AUC, every(t, 50, 600))
	if got := f.Rarest(); got != (accuracy.Class{Number: 1, Cases: 12}) {
		t.Errorf("the rarest class is %+v, want class 1 of 12 cases", got)
	}
	l := limits2(validators.OutputLimits{})
	l.Accuracy = &validators.AccuracyLimit{Metric: accuracy.AUC, Drop: &validators.AtMost{Max: 0.02}}
	measured := f.Accuracy()
	got := l.Judge("fp32", validators.Measured{Cases: 600, Accuracy: &measured, Figures: f})
	want := "use more cases of class 1: 12 of these 600 have it, and the bound follows from them; it takes about 185 without a difference"
	if !slices.ContainsFunc(got.Reasons, func(r evidence.Reason) bool { return strings.HasSuffix(r.Message, want) }) {
		t.Errorf("%+v, want %q", got.Reasons, want)
	}
}

func tensorOf[T tensor.Scalar](t *testing.T, values []T) tensor.Tensor {
	t.Helper()
	out, err := tensor.New(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What cases can prove depends on their number, and a drop is named where a rate is limited.
func TestProof(t *testing.T) {
	t.Parallel()
	l := limits2(validators.OutputLimits{})
	if p := l.Proof(360); p == nil || math.Abs(p.Rate-0.9917) > 1e-4 || p.Drop != 0 || p.Confidence != 0.95 || p.Cases != 360 {
		t.Errorf("360 cases prove %+v", p)
	}
	l.Accuracy = &validators.AccuracyLimit{Metric: "top1"}
	if p := l.Proof(360); p == nil || math.Abs(p.Drop-0.0102) > 1e-4 {
		t.Errorf("360 labelled cases prove %+v", p)
	}
	if got := l.Proof(0); got != nil {
		t.Errorf("no cases: %+v, want nothing", got)
	}
}

// Cases in which an output has no elements prove nothing about it.
func TestEmptyOutputsProveNothing(t *testing.T) {
	t.Parallel()
	judge := func(o validators.OutputLimits, edit func(r *tensor.Result)) validators.Judgement {
		result := equalResult(300)
		edit(&result)
		return limits2(o).Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 300})
	}
	errors := validators.OutputLimits{MaxError: &validators.AtMost{Max: 1}}
	got := judge(errors, func(r *tensor.Result) { r.FullCases, r.Elements = 0, 0 })
	if got.Verdict != evidence.VerdictUndecided || len(got.Reasons) != 1 || got.Reasons[0].Code != validators.ReasonNotRun {
		t.Errorf("without elements: %s for %+v, want undecided", got.Verdict, got.Reasons)
	}
	got = judge(errors, func(r *tensor.Result) { r.FullCases = 8 })
	if len(got.Checks) != 1 || got.Checks[0].Cases != 8 || *got.Checks[0].Proves < 0.3 {
		t.Errorf("elements in 8 cases: %+v, want what 8 cases prove", got.Checks)
	}
	equal := validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.95}}
	if got := judge(equal, func(r *tensor.Result) { r.FullCases, r.EqualMisses = 8, 8 }); got.Verdict != evidence.VerdictFail {
		t.Errorf("wrong in all 8 of 300 cases with elements: %s for %+v, want a failure", got.Verdict, got.Reasons)
	}
}

// Some of the cases fail an engine by what they show, not because two classes are almost tied in one of them.
func TestJudgeSomeOfFewCases(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.99}})
	for misses, want := range map[float64]evidence.Verdict{0: evidence.VerdictPass, 1: evidence.VerdictPass, 8: evidence.VerdictFail} {
		result := equalResult(8)
		result.Top1Misses = misses
		if got := limits.JudgeSome("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 8}); got.Verdict != want {
			t.Errorf("%v of 8 cases differ: %s for %+v, want %s", misses, got.Verdict, got.Reasons, want)
		}
	}
}
