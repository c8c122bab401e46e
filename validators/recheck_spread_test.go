package validators_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The SNR and the largest error of all cases follow from the figures of each case: no other ones pass.
func TestRecountSpread(t *testing.T) {
	t.Parallel()
	p := measuredReport(t, "top1", 40, 3)
	for name, change := range map[string]struct {
		change func(*evidence.OutputFigures)
		want   string
	}{
		"as it is":               {func(*evidence.OutputFigures) {}, ""},
		"a better SNR":           {func(o *evidence.OutputFigures) { o.SpreadSNRdB += 1e-4 }, "output logits: snrDb"},
		"a worse SNR":            {func(o *evidence.OutputFigures) { o.SpreadSNRdB -= 1e-4 }, "output logits: snrDb"},
		"no number":              {func(o *evidence.OutputFigures) { o.SpreadSNRdB = evidence.Figure(math.NaN()) }, "output logits: snrDb"},
		"a smaller error":        {func(o *evidence.OutputFigures) { o.MaxError -= 1e-4 }, "output logits: maxError"},
		"a larger error":         {func(o *evidence.OutputFigures) { o.MaxError += 1e-4 }, "output logits: maxError"},
		"a smaller error of one": {func(o *evidence.OutputFigures) { o.CaseError -= 1e-4 }, "output logits: caseError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, said := p, p.report.Outputs["logits"]
			change.change(&said)
			of.report.Outputs = map[string]evidence.OutputFigures{"logits": said}
			got, err := of.again()
			if err != nil || (len(got.Differences) > 0) != (change.want != "") || change.want != "" && got.Differences[0].What != change.want {
				t.Errorf("differences %+v, error %v; want %q", got.Differences, err, change.want)
			}
		})
	}
}

// By a file without the optional figures an SNR that is better than that of the best case, or worse than that of the worst, and a largest error
// below the mean error of a case are found, from the limits at which no honest report can be.
func TestRecountBoundsSums(t *testing.T) {
	t.Parallel()
	p := measuredReport(t, "top1", 40, 3)
	figures, err := percase.Read(p.file)
	if err != nil {
		t.Fatal(err)
	}
	least, most := math.Inf(1), 0.0
	for i, of := range figures.Outputs["logits"] {
		least, most = min(least, of.Error), max(most, of.Error)
		figures.Outputs["logits"][i].RMSE = math.NaN()
	}
	if p.file, _, err = figures.Marshal(); err != nil {
		t.Fatal(err)
	}
	p.report.CaseFigures = evidence.NameCaseFigures(p.file, "")
	best, worst := -20*math.Log10(least), -20*math.Log10(most)
	for name, c := range map[string]struct {
		snr, maxError float64
		want          string
	}{
		"as the best case":      {best, most, ""},
		"as the worst case":     {worst, most, ""},
		"better than the best":  {best + 1e-4, most, "output logits: snrDb"},
		"worse than the worst":  {worst - 1e-4, most, "output logits: snrDb"},
		"no error at all":       {math.Inf(1), most, "output logits: snrDb"},
		"no number":             {math.NaN(), most, "output logits: snrDb"},
		"below the worst case":  {best, most - 1e-4, "output logits: maxError"},
		"no largest error":      {best, 0, "output logits: maxError"},
		"larger than any limit": {best, 1e9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := p
			said := p.report.Outputs["logits"]
			said.SpreadSNRdB, said.MaxError = evidence.Figure(c.snr), evidence.Figure(c.maxError)
			of.report.Outputs = map[string]evidence.OutputFigures{"logits": said}
			got, err := of.again()
			if err != nil || (len(got.Differences) > 0) != (c.want != "") || c.want != "" && !strings.HasPrefix(got.Differences[0].What, c.want) {
				t.Errorf("differences %+v, error %v; want %q", got.Differences, err, c.want)
			}
			if got, err := validators.RejudgeWith(of.report, validators.Beside{Figures: of.file}); err != nil || len(got.Differences) > 0 {
				t.Errorf("without the limits: %+v, error %v; want no difference", got.Differences, err)
			}
		})
	}
}

// No honest comparison has figures that its cases do not allow: also with cases of several sizes, one that is far from
// all others, a reference that does not change, and elements without a finite error.
func TestRecountBoundsHonest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		n := rapid.IntRange(1, 40).Draw(rt, "cases")
		scale := rapid.SampledFrom([]float64{0, 1, 1e-6, 1e6}).Draw(rt, "scale")
		noise := rapid.SampledFrom([]float64{0, 1e-7, 0.01, 3}).Draw(rt, "noise")
		far := rapid.SampledFrom([]float64{1, 50, 1e8}).Draw(rt, "furthest case")
		broken := rapid.IntRange(0, 9).Draw(rt, "broken") == 0
		comparison := tensor.NewComparison(tensor.Options{})
		for i := range n {
			size := 1 + r.IntN(5)
			want, got := make([]float64, size), make([]float64, size)
			for j := range size {
				want[j] = 1 + scale*r.NormFloat64()
				if i == n/2 {
					want[j] *= far
				}
				got[j] = want[j] * (1 + noise*r.NormFloat64())
				if broken && i == n-1 {
					got[j] = math.NaN()
				}
			}
			w, errWant := tensor.New(want, 1, int64(size))
			g, errGot := tensor.New(got, 1, int64(size))
			if err := comparison.Add(i, w, g); err != nil || errWant != nil || errGot != nil {
				rt.Fatal(err, errWant, errGot)
			}
		}
		result := comparison.Result()
		l := limits2(validators.OutputLimits{MaxError: &validators.AtMost{Max: 9}, SNRdB: &validators.AtLeast{Min: 3}})
		j := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: n})
		each := comparison.Each()
		if follows, ok := tensor.Pool(each, false); !ok || follows.SpreadSNR != result.SpreadSNR || follows.MaxError != result.MaxError || follows.CaseError != result.CaseError {
			rt.Fatalf("the cases give %+v, %t; want what the comparison gave: %+v", follows, ok, result)
		}
		if rapid.Bool().Draw(rt, "without the optional figures") {
			for i := range each {
				each[i].RMSE = math.NaN()
			}
		}
		file, leftOut, err := percase.Figures{Outputs: map[string][]tensor.CaseFigures{"logits": each}}.Marshal()
		if err != nil || leftOut != "" {
			rt.Fatal(err, leftOut)
		}
		p := percaseReport{file: file, limits: l, report: evidence.ParityReport{
			ReportHead: evidence.ReportHead{Verdict: j.Verdict, Reasons: j.Reasons}, Cases: evidence.CasesRun{Count: n, Ran: n},
			Outputs: map[string]evidence.OutputFigures{"logits": parity.Figures("float64", result)},
			Rules:   l.V, Confidence: evidence.Figure(j.Confidence), Attempts: 1, Checks: slices.Concat(j.Checks, goldenCompared()), CaseFigures: evidence.NameCaseFigures(file, leftOut)}}
		if got, err := p.again(); err != nil || len(got.Differences) > 0 {
			rt.Fatalf("differences %+v, error %v; want none", got.Differences, err)
		}
	})
}
