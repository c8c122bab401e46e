package validators_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// percaseReport is a report with its per-case figures, as verify makes both, and its limits.
type percaseReport struct {
	report evidence.ParityReport
	file   []byte
	limits validators.Limits
}

// drawn are outputs and labels of n cases in the shape that a metric takes.
func drawn(t *testing.T, r *rand.Rand, m accuracy.Metric, n int) (reference, engine, labels tensor.Tensor) {
	t.Helper()
	of := func(out tensor.Tensor, err error) tensor.Tensor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if m.Needs == accuracy.NeedsBoxes {
		want, got, truth := drawnBoxes(r, n)
		return of(tensor.New(want, int64(n), 2, 6)), of(tensor.New(got, int64(n), 2, 6)), of(tensor.New(truth, int64(n), 2, 5))
	}
	if m.Needs == accuracy.NeedsMarks { // two labels of each case
		m.Needs = accuracy.NeedsTwo
		reference, engine, labels = drawn(t, r, m, 2*n)
		for _, each := range []*tensor.Tensor{&reference, &engine, &labels} {
			each.Shape = []int64{int64(n), 2}
		}
		return reference, engine, labels
	}
	width := 1
	if slices.Contains([]accuracy.Needs{accuracy.NeedsScores, accuracy.NeedsAnswers, accuracy.NeedsSeveral, accuracy.NeedsPlaces}, m.Needs) {
		width = 12 // classes, more than any metric tries
	}
	want, got := make([]float64, n*width), make([]float64, n*width)
	numbers, classes := make([]float64, n), make([]int64, n)
	for i := range n {
		classes[i], numbers[i] = int64(r.IntN(2)), 5*r.NormFloat64()
		for j := range width {
			v := r.NormFloat64() + numbers[i]
			if width > 1 || m.Needs == accuracy.NeedsTwo {
				v = r.NormFloat64() // scores
			}
			if width > 1 && j == int(classes[i]) || width == 1 && classes[i] == 1 && m.Needs == accuracy.NeedsTwo {
				v += 1.5
			}
			want[i*width+j], got[i*width+j] = v, v+0.3*r.NormFloat64()
			if m.Needs == accuracy.NeedsProgram { // scores, of which none is negative
				want[i*width+j], got[i*width+j] = math.Abs(v), math.Abs(got[i*width+j])
			}
		}
	}
	shape := []int64{int64(n), int64(width)}
	reference, engine = of(tensor.New(want, shape...)), of(tensor.New(got, shape...))
	if m.Needs == accuracy.NeedsValues || m.Needs == accuracy.NeedsOne {
		return reference, engine, of(tensor.New(numbers, shape[0]))
	}
	return reference, engine, of(tensor.New(classes, shape[0]))
}

// drawnBoxes are two detections and two labels of each case, which overlap more or less.
func drawnBoxes(r *rand.Rand, n int) (reference, engine, labels []float64) {
	for i := range 2 * n {
		x, class := float64(100*(i%2)), float64(r.IntN(2))
		labels = append(labels, x, 0, x+10, 10, class)
		reference = append(reference, x+r.Float64(), 0, x+10, 10, r.Float64(), class)
		engine = append(engine, x+4*r.Float64(), 0, x+10, 10, r.Float64(), float64(r.IntN(2)))
	}
	return reference, engine, labels
}

// accuracyLimit bounds a metric in every way that it can be.
func accuracyLimit(m accuracy.Metric) *validators.AccuracyLimit {
	l := &validators.AccuracyLimit{Metric: m.Name, Drop: &validators.AtMost{Max: 0.5}, Regression: &validators.AtMost{Max: 0.5},
		Relative: &validators.AtLeast{Min: 0.5}, Slices: &validators.SliceLimit{By: "region", Drop: &validators.AtMost{Max: 0.9}}}
	if m.Loss {
		l.Max, l.Slices.Max = &validators.AtMost{Max: 5}, &validators.AtMost{Max: 9}
	} else {
		l.Min, l.Slices.Min = &validators.AtLeast{Min: 0.1}, &validators.AtLeast{Min: 0.05}
	}
	return l
}

// measuredReport judges cases by a metric, in two slices and beside another engine.
func measuredReport(t *testing.T, name string, n int, seed uint64) percaseReport {
	t.Helper()
	m, err := accuracy.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	reference, engine, labels := drawn(t, r, m, n)
	counter, current := accuracy.NewCounter(m, false, seed), accuracy.NewCounter(m, false, seed)
	comparison := tensor.NewComparison(tensor.Options{})
	of := make([]int64, n)
	for i := range int64(n) {
		of[i] = int64(r.IntN(2))
		w, errWant := reference.Rows(i, i+1)
		g, errGot := engine.Rows(i, i+1)
		if err := comparison.Add(int(i), w, g); err != nil || errWant != nil || errGot != nil {
			t.Fatal(err, errWant, errGot)
		}
	}
	for c, was := range map[*accuracy.Counter]tensor.Tensor{counter: reference, current: engine} {
		err := c.Add(was, engine, labels)
		if m.Needs == accuracy.NeedsProgram {
			err = c.AddScores(was.Float64s(), engine.Float64s())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	parts, err := counter.Slices(of)
	if err != nil {
		t.Fatal(err)
	}
	l := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 9}, Cosine: &validators.AtLeast{Min: -1}, CaseError: &validators.AtMost{Max: 9},
		Equal: &validators.AtLeast{}, Top1: &validators.AtLeast{Min: 0.01}})
	l.Accuracy = accuracyLimit(m)
	if m.Needs == accuracy.NeedsProgram {
		l.Accuracy.Program = digest.FromString("score.py")
	}
	a, was, result := counter.Result(), current.Result(), comparison.Result()
	a.Program = l.Accuracy.Program
	j := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Accuracy: &a, Figures: counter.Figures(),
		Current: &was, CurrentFigures: current.Figures(), Slices: parts, Cases: n})
	file, leftOut, err := percase.Figures{Accuracy: counter.Columns(), Current: current.Columns(), Slices: of,
		Outputs: map[string][]tensor.CaseFigures{"logits": comparison.Each()}}.Marshal()
	if err != nil || leftOut != "" {
		t.Fatal(err, leftOut)
	}
	return percaseReport{file: file, limits: l, report: evidence.ParityReport{
		ReportHead: evidence.ReportHead{Verdict: j.Verdict, Reasons: j.Reasons}, Cases: evidence.CasesRun{Count: n, Ran: n},
		Outputs:  map[string]evidence.OutputFigures{"logits": parity.Figures("float64", result)},
		Accuracy: &a, Current: &evidence.CurrentAccuracy{Accuracy: was}, Slices: j.Slices, Rules: l.V, Confidence: evidence.Figure(j.Confidence),
		Attempts: 1, Checks: slices.Concat(j.Checks, goldenCompared()), CaseFigures: evidence.NameCaseFigures(file, leftOut),
	}}
}

func (p percaseReport) again() (validators.Rejudged, error) {
	return validators.RejudgeWith(p.report, validators.Beside{Figures: p.file, Limits: &p.limits, Precision: "fp32"})
}

// With the per-case figures nothing is taken as a report says it, by any metric.
func TestRecountAgrees(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := measuredReport(t, name, 60, 7)
			got, err := p.again()
			if err != nil || len(got.Differences) > 0 || got.Verdict != p.report.Verdict || got.Taken != 0 || !got.Recounted {
				t.Errorf("%+v, error %v; want %s without a difference, and nothing taken", got, err, p.report.Verdict)
			}
			resampled := slices.ContainsFunc(p.report.Checks, func(c evidence.Check) bool { return c.Resampled })
			if got, err := validators.Rejudge(p.report); err != nil || (got.Taken > 0) != resampled || got.Recounted {
				t.Errorf("without the figures: %+v, error %v; want bounds of a bootstrap taken: %t", got, err, resampled)
			}
		})
	}
}

// numbersOf are all numbers that a report has about accuracy and its bounds.
func numbersOf(r *evidence.ParityReport) map[string]*evidence.Figure {
	all := make(map[string]*evidence.Figure)
	ofAccuracy := func(what string, a *evidence.Accuracy) {
		all[what+" reference"], all[what+" engine"], all[what+" drop"] = &a.Reference, &a.Engine, &a.Drop
		all[what+" lost"], all[what+" won"], all[what+" right"] = &a.Lost, &a.Won, &a.Right
	}
	ofAccuracy("accuracy", r.Accuracy)
	ofAccuracy("current", &r.Current.Accuracy)
	for i := range r.Slices {
		s := &r.Slices[i]
		ofAccuracy("slice "+s.Value, &s.Accuracy)
		all["slice "+s.Value+" low"], all["slice "+s.Value+" high"] = &s.Low, &s.High
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		what := c.Figure + " " + c.Output + c.Slice
		if c.Trial != evidence.TrialCases {
			continue
		}
		all[what+" value"], all[what+" limit"] = &c.Value, c.Limit
		for name, f := range map[string]*evidence.Figure{"low": c.Low, "high": c.High, "misses": c.Misses, "won": c.Won} {
			if f != nil {
				all[what+" "+name] = f
			}
		}
	}
	return all
}

// In a random report, any one number that is another one is found, and so is any one byte of the figures.
func TestRecountFindsTampering(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(accuracy.Metrics()).Draw(rt, "metric")
		p := measuredReport(t, name, rapid.IntRange(8, 16).Draw(rt, "cases"), rapid.Uint64Range(1, 1000).Draw(rt, "seed"))
		if got, err := p.again(); err != nil || len(got.Differences) > 0 || got.Verdict != p.report.Verdict {
			rt.Fatalf("as it is: %+v, %v", got, err)
		}
		numbers := numbersOf(&p.report)
		var names []string
		for name := range numbers {
			names = append(names, name)
		}
		slices.Sort(names)
		which := rapid.SampledFrom(names).Draw(rt, "number")
		was := *numbers[which]
		*numbers[which] = changed(was, evidence.Figure(rapid.SampledFrom([]float64{0.5, -0.5, 1e-6, -1e-6, 1, math.Inf(1), math.NaN()}).Draw(rt, "by")))
		if got, err := p.again(); err == nil && len(got.Differences) == 0 {
			rt.Fatalf("%s is %v in place of %v, and nothing differs: %+v", which, *numbers[which], was, got)
		}
		*numbers[which] = was
		at := rapid.IntRange(0, len(p.file)-1).Draw(rt, "byte")
		p.file = slices.Clone(p.file)
		p.file[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		if _, err := p.again(); registry.CodeOf(err) != registry.CodeDigest {
			rt.Fatalf("byte %d of the figures is another one: %v, want one of code digest", at, err)
		}
	})
}

// changed is another number than it was.
func changed(was, by evidence.Figure) evidence.Figure {
	now := was + by
	if now == was || now != now && was != was {
		return 0.123
	}
	return now
}

// A file of figures that somebody changed, and then named in the report, gives other counts or bounds.
func TestRecountFindsOtherFigures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"top1", "mae", "rmse", "r2", "perplexity", "f1_macro"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := measuredReport(t, name, 40, 3)
			figures, err := percase.Read(p.file)
			if err != nil {
				t.Fatal(err)
			}
			for column, of := range figures.Accuracy {
				if strings.HasSuffix(column, "several") || strings.HasPrefix(column, "answer") {
					continue // of the range of values alone, or of classes from which no figure is computed
				}
				other := figures
				other.Accuracy = make(accuracy.Columns)
				other.Accuracy.Add("", figures.Accuracy)
				other.Accuracy[column] = tensor.Tensor{DType: of.DType, Shape: of.Shape, Data: raised(of)}
				tampered := p
				if tampered.file, _, err = other.Marshal(); err != nil {
					t.Fatal(err)
				}
				tampered.report.CaseFigures = evidence.NameCaseFigures(tampered.file, "")
				if got, err := tampered.again(); err == nil && len(got.Differences) == 0 {
					t.Errorf("the first %s is another one, and nothing differs", column)
				}
			}
		})
	}
}

// raised are the data of a column whose first number is another one.
func raised(of tensor.Tensor) []byte {
	data := slices.Clone(of.Data)
	switch of.DType {
	case tensor.Float64:
		values := of.Float64s()
		values[0]++
		raised, err := tensor.New(values, of.Shape...)
		if err != nil {
			return nil
		}
		return raised.Data
	default:
		data[0] ^= 1
	}
	return data
}

// A report has a check of every limit, and of no other; slices that the limits declare are there.
func TestRejudgeByLimits(t *testing.T) {
	t.Parallel()
	without := func(drop func(c evidence.Check) bool) func(p *percaseReport) {
		return func(p *percaseReport) { p.report.Checks = slices.DeleteFunc(p.report.Checks, drop) }
	}
	for name, c := range map[string]struct {
		change func(p *percaseReport)
		what   string
	}{
		"no check of an output": {without(func(c evidence.Check) bool { return c.Figure == "cosine" }), "output logits, cosine"},
		"no check of accuracy":  {without(func(c evidence.Check) bool { return c.Figure == "drop" && c.Slice == "" }), "drop"},
		"no checks of slices":   {without(func(c evidence.Check) bool { return c.Slice != "" }), "drop of slice 0"},
		"no slices": {func(p *percaseReport) {
			without(func(c evidence.Check) bool { return c.Slice != "" })(p)
			p.report.Slices = nil
		}, "slices by region"},
		"no comparison with the engine that it replaces": {func(p *percaseReport) {
			without(func(c evidence.Check) bool { return c.Figure == "regression" })(p)
			p.report.Current = nil
			p.report.Destination = &evidence.Destination{Environment: "prod", Engine: evidence.DigestSet{"sha256": strings.Repeat("a", 64)}}
		}, "regression"},
		"another limit": {func(p *percaseReport) { p.limits.Precisions["fp32"].Outputs["logits"].MaxAbs.Max = 8 }, "output logits, maxAbs: limit"},
		"a limit less":  {func(p *percaseReport) { p.limits.Accuracy.Drop = nil }, "drop"},
		"another metric": {func(p *percaseReport) {
			p.limits.Accuracy.Metric = "top5"
		}, "accuracy: metric"},
		"another confidence": {func(p *percaseReport) { p.limits.Confidence = 0.99 }, "confidence of the limits"},
		"more cases":         {func(p *percaseReport) { p.limits.MinCases = 61 }, "cases"},
	} {
		for _, precision := range []string{"fp32", ""} {
			t.Run(name+" "+precision, func(t *testing.T) {
				t.Parallel()
				p := measuredReport(t, "top1", 60, 7)
				c.change(&p)
				p.report.Verdict, p.report.Reasons = evidence.VerdictPass, nil
				got, err := validators.RejudgeWith(p.report, validators.Beside{Limits: &p.limits, Precision: precision})
				if err != nil || got.Verdict == evidence.VerdictPass ||
					!slices.ContainsFunc(got.Differences, func(d validators.Difference) bool { return d.What == c.what }) {
					t.Errorf("%+v, error %v; want no pass, and a difference in %q", got, err, c.what)
				}
			})
		}
	}
}

// Per-case figures that a report does not name, or names in part, are said.
func TestRecountParts(t *testing.T) {
	t.Parallel()
	p := measuredReport(t, "mae", 30, 2)
	none := p
	none.report.CaseFigures = nil
	if _, err := none.again(); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a report that names none: error %v, want one of code invalid", err)
	}
	none.file = nil
	if got, err := none.again(); err != nil || got.Taken == 0 || len(got.Differences) > 0 {
		t.Errorf("a report that names none, and none at hand: %+v, %v; want bounds taken", got, err)
	}
	figures, err := percase.Read(p.file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change  func(f *percase.Figures)
		leftOut string
		differ  bool
		what    string // of a difference; empty: any
	}{
		"no outputs, which is said": {func(f *percase.Figures) { f.Outputs = nil }, "those of outputs", false, ""},
		"no outputs":                {func(f *percase.Figures) { f.Outputs = nil }, "", true, ""},
		"no accuracy":               {func(f *percase.Figures) { f.Accuracy = nil }, "", true, ""},
		"no other engine":           {func(f *percase.Figures) { f.Current = nil }, "", true, ""},
		"no slices":                 {func(f *percase.Figures) { f.Slices = nil }, "", true, ""},
		"fewer cases of an output": {func(f *percase.Figures) {
			f.Outputs = map[string][]tensor.CaseFigures{"logits": f.Outputs["logits"][1:]}
		}, "", true, "output logits: per-case figures"},
		"an output that is not there": {func(f *percase.Figures) {
			f.Outputs = map[string][]tensor.CaseFigures{"other": f.Outputs["logits"]}
		}, "", true, "output other: per-case figures"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part, of := p, figures
			c.change(&of)
			var err error
			if part.file, _, err = of.Marshal(); err != nil {
				t.Fatal(err)
			}
			part.report.CaseFigures = evidence.NameCaseFigures(part.file, c.leftOut)
			got, err := part.again()
			if err != nil || (len(got.Differences) > 0) != c.differ {
				t.Errorf("%+v, %v; want a difference: %t", got.Differences, err, c.differ)
			}
			if c.what != "" && !slices.ContainsFunc(got.Differences, func(d validators.Difference) bool { return d.What == c.what }) {
				t.Errorf("%+v; want a difference of %s", got.Differences, c.what)
			}
		})
	}
	again, err := percase.Read(p.file)
	if err != nil || !reflect.DeepEqual(again.Slices, figures.Slices) {
		t.Errorf("figures that are read again: %v", err)
	}
}
