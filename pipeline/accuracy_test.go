//go:build cgo

package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// writeTensors writes the file of the cases.
func (w *world) writeTensors(t *testing.T, tensors map[string]tensor.Tensor) {
	t.Helper()
	f, err := os.Create(filepath.Join(w.dir, "cases", "cases-00000.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
}

// priced writes 40 cases with what they cost as labels: 1.5*x, and a tenth more or less by turns.
func (w *world) priced(t *testing.T) {
	t.Helper()
	var x, y []float32
	for i := range 40 {
		v := float32(i - 20)
		x, y = append(x, v), append(y, 1.5*v+float32(0.2)*float32(i%2)-0.1)
	}
	n := int64(len(x))
	inputs, err := tensor.New(x, n, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tensor.New(y, n, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	third := make([]uint8, n)
	for i := range third[:4] {
		third[i] = 3
	}
	regions, err := tensor.New(third, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.writeTensors(t, map[string]tensor.Tensor{"x": inputs, "price": labels, "region": regions})
}

// pricedSpec has labels, limits on accuracy, and limits on int8 that let accuracy decide.
func pricedSpec(accuracy string) string {
	return strings.Replace(digits, "cases: cases/", "cases: {path: cases/, labels: price}", 1) +
		"limits: {accuracy: " + accuracy +
		", precisions: {int8: {outputs: {y: {snr: {min: 0}, max_error: {max: 9}, case_error: {max: 9}, systematic: {max: 9}}}}}}\n"
}

// A regression model is limited by its error against labels: an engine 2 % off is worse, by more
// than a limit of 10 % of the reference's error allows.
func TestErrorAgainstLabels(t *testing.T) {
	t.Parallel()
	for metric, rises := range map[string]bool{"rmse": true, "mae": true, "r2": false} {
		t.Run(metric, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.53)
			w.priced(t)
			built := w.built(t, pricedSpec("{metric: "+metric+", drop: {max: 10%}}"), build.Options{})
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if rises != registry.HasCode(err, registry.CodeLimit) {
				t.Fatalf("error %v, want a limit: %v", err, rises)
			}
			for _, e := range verified.Engines {
				want := evidence.VerdictPass
				if rises && strings.HasSuffix(e.Label, "int8") {
					want = evidence.VerdictFail
				}
				if e.Parity.Verdict != want {
					t.Errorf("%s: %s, %v; want %s", e.Label, e.Parity.Verdict, e.Parity.Reasons, want)
				}
				again, err := validators.Rejudge(e.Parity)
				if err != nil || len(again.Differences) > 0 || again.Verdict != want || again.Taken != 1 {
					t.Errorf("%s judged again: %+v, error %v; want %s", e.Label, again, err, want)
				}
				if again := w.rejudged(t, verified, e); len(again.Differences) > 0 || again.Verdict != want || again.Taken != 0 {
					t.Errorf("%s judged again by its per-case figures: %+v; want %s, and nothing taken", e.Label, again, want)
				}
				if a := e.Parity.Accuracy; a.Metric != metric || a.Cases != 40 || a.Seed == 0 {
					t.Errorf("%s: %+v, want %s of 40 cases with a seed", e.Label, a, metric)
				}
			}
		})
	}
}

// The bounds of a bootstrap are the same whenever the same engine runs the same cases.
func TestBoundsAreTheSameAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.51)
	w.priced(t)
	built := w.built(t, pricedSpec("{metric: mae, max: 5, drop: {max: 90%}}"), build.Options{})
	var first []evidence.Check
	for range 2 {
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if err != nil {
			t.Fatal(err)
		}
		checks := verified.Engines[1].Parity.Checks.OfCases()
		last := checks[len(checks)-2:]
		if first == nil {
			first = last
		}
		for i, c := range last {
			if !c.Resampled || *c.Low != *first[i].Low || *c.High != *first[i].High || !(*c.Low < c.Value && c.Value < *c.High) {
				t.Errorf("%s: %v in %v to %v, before %v to %v", c.Figure, c.Value, *c.Low, *c.High, *first[i].Low, *first[i].High)
			}
		}
	}
}

// The first release that has labels replaces nothing, so that a limit on a regression asks for nothing.
func TestRegressionOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.priced(t)
	built := w.built(t, pricedSpec("{metric: mae, max: 5, regression: {max: 10%}}"), build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range verified.Engines {
		if e.Parity.Verdict != evidence.VerdictPass || e.Parity.Current != nil || len(e.Parity.Reasons) > 0 {
			t.Errorf("%s: %s %v beside %+v, want a pass beside nothing", e.Label, e.Parity.Verdict, e.Parity.Reasons, e.Parity.Current)
		}
	}
}

// Each report in which an engine failed a limit on a rate is an attempt, and the next report counts
// it. An engine that passes has one attempt, however often it is verified.
func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.53)
	w.priced(t)
	built := w.built(t, pricedSpec("{metric: mae, drop: {max: 10%}}"), build.Options{})
	for round := 1; round <= 3; round++ {
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if !registry.HasCode(err, registry.CodeLimit) || len(verified.Engines) != 2 {
			t.Fatalf("verified %d engines, error %v; want two, and a limit", len(verified.Engines), err)
		}
		if got := verified.Engines[0].Parity.Attempts; got != 1 {
			t.Errorf("round %d: the engine that passes has %d attempts, want 1", round, got)
		}
		if got := verified.Engines[1].Parity.Attempts; got != round {
			t.Errorf("round %d: the engine that fails has %d attempts, want %[1]d", round, got)
		}
	}
}

// What fits no output, or cannot be measured on the labels, is refused before anything is signed.
func TestAccuracyRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
	}{
		"a metric of classes": {pricedSpec("{metric: f1_macro, drop: {max: 10%}}"),
			`limits.accuracy.metric: f1_macro wants scores of classes, one probability of yes, or answers that are whole numbers, and output "y" of kind value has dtype float32 and shape [1 1]: want one of auc, r2, mae, mape, rmse`},
		"no such output":     {pricedSpec("{metric: mae, output: z, drop: {max: 10%}}"), `limits.accuracy.output: the model has no output "z": there are y`},
		"labels of no class": {pricedSpec("{metric: auc, drop: {max: 20%}}"), `tensor "price", which cases.labels names: dtype is float32: want integers`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			_, err := build.Build(t.Context(), w.p, w.spec(t, c.text), build.Options{})
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want CodeInvalid with %q", err, c.want)
			}
		})
	}
}

// A reference model that has nothing right on the labels is refused where a limit is on what an
// engine loses of it: nothing could be lost. A limit on the engine alone stays.
func TestReferenceHasNothingRight(t *testing.T) {
	t.Parallel()
	for accuracy, want := range map[string]string{
		"{metric: auc, drop: {max: 50%}}":    `auc of the reference model on the labels "turned" is 0: no engine can be worse`,
		"{metric: auc, relative: {min: 1%}}": `auc of the reference model on the labels "turned" is 0`,
		"{metric: auc, min: 1%}":             "",
	} {
		w := setup(t, 1.5)
		w.turned(t)
		text := strings.Replace(pricedSpec(accuracy), "labels: price", "labels: turned", 1)
		_, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{})
		if want == "" && err != nil || want != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", accuracy, err, want)
		}
	}
}

// turned writes 40 cases whose class is 1 where x, and so the output, is small.
func (w *world) turned(t *testing.T) {
	t.Helper()
	x, classes := make([]float32, 40), make([]uint8, 40)
	for i := range x {
		x[i] = float32(i - 20)
		if i < 20 {
			classes[i] = 1
		}
	}
	inputs, err := tensor.New(x, 40, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tensor.New(classes, 40)
	if err != nil {
		t.Fatal(err)
	}
	w.writeTensors(t, map[string]tensor.Tensor{"x": inputs, "turned": labels})
}

// Slices have figures and bounds of their own, and one with too few cases stays undecided, by its name.
func TestSlices(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.priced(t)
	text := strings.Replace(pricedSpec("{metric: mae, max: 1, slices: {by: region, max: 1}}"),
		"[fp32, {name: int8, quantize: {method: dynamic}}]", "[fp32]", 1)
	text = strings.Replace(text,
		", precisions: {int8: {outputs: {y: {snr: {min: 0}, max_error: {max: 9}, case_error: {max: 9}, systematic: {max: 9}}}}}", "", 1)
	built := w.built(t, text, build.Options{})
	if len(w.warnings) == 0 || !strings.Contains(strings.Join(w.warnings, "; "),
		"slice region=3: mae cannot be bounded by 4 cases: it takes at least 8") {
		t.Errorf("warnings %v, want one of slice 3", w.warnings)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), "slice region=3: mae is 0.1 in 4 cases, too few for a bound") {
		t.Fatalf("error %v, want that slice 3 has too few cases", err)
	}
	p := verified.Engines[0].Parity
	if p.Verdict != evidence.VerdictUndecided || len(p.Slices) != 2 || p.Slices[0].Value != "0" ||
		p.Slices[0].Accuracy.Cases != 36 || p.Slices[1].Value != "3" || p.Slices[1].Accuracy.Cases != 4 {
		t.Errorf("%s, slices %+v; want 36 cases of slice 0 and 4 of slice 3", p.Verdict, p.Slices)
	}
	if s := p.Slices[0]; !(s.Low <= s.Accuracy.Engine && s.Accuracy.Engine <= s.High && s.High < 0.2) {
		t.Errorf("slice 0: %+v, want bounds around its error", s)
	}
	again, err := validators.Rejudge(p)
	if err != nil || again.Verdict != evidence.VerdictUndecided || len(again.Differences) > 0 {
		t.Errorf("judged again: %+v, %v", again, err)
	}
	if again := w.rejudged(t, verified, verified.Engines[0]); again.Verdict != evidence.VerdictUndecided ||
		len(again.Differences) > 0 || again.Taken != 0 {
		t.Errorf("judged again by its per-case figures: %+v; want undecided, and nothing taken", again)
	}
	for by, want := range map[string]string{"area": "no such tensor: the file has", "price": "dtype is float32: want integers or booleans"} {
		_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(text, "by: region", "by: "+by, 1)), build.Options{})
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("slices by %s: error %v, want CodeInvalid with %q", by, err, want)
		}
	}
}
