package consistency_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func TestHonest(t *testing.T) {
	t.Parallel()
	for name, stacked := range map[string]bool{"cases are the batch": false, "cases have a batch each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, stacked)
			checks, reasons, err := w.engine(t, honest)
			if err != nil || len(reasons) != 0 {
				t.Fatalf("error %v, reasons %v; want none", err, reasons)
			}
			if got := whats(checks); !slices.Equal(got, every()) {
				t.Errorf("checks %q, want %q", got, every())
			}
			for _, p := range checks {
				// A batch has four cases of the first shard or three of the second, and one of 16 has all of the first.
				want := map[evidence.Trial]int{evidence.TrialRepeat: 13, evidence.TrialProcess: 13,
					evidence.TrialBatch: 7, evidence.TrialDimension: 8, evidence.TrialBeyond: 4}[p.Trial]
				switch p.Size {
				case "batch=16":
					want = 10
				case "all max: batch=16, seq=32":
					want = 1
				}
				if p.Verdict != evidence.VerdictPass || p.Value != 0 || p.Output != "" || p.Affected != 0 || p.Cases != want {
					t.Errorf("%s %s: %s, %d cases, %d affected by %v; want a pass of %d cases", p.Trial, p.Size, p.Verdict, p.Cases, p.Affected, p.Value, want)
				}
			}
			if w.processes != 1 {
				t.Errorf("%d processes, want 1", w.processes)
			}
		})
	}
}

// A model that computes over the cases of a batch fails as the engine's fault does, and the reason names the model.
func TestModelMixesCases(t *testing.T) {
	t.Parallel()
	mixing := func(_ int, x []float32, batch, seq int) ([]float32, error) {
		y := slices.Clone(x)
		for i := range y {
			y[i] += x[(i+seq)%len(x)] * float32(min(batch-1, 1)) // the next case, if there is one
		}
		return y, nil
	}
	alone := but(func(_ int, y []float32, batch, _ int) error { y[0] += float32(batch - 1); return nil })
	for name, c := range map[string]struct {
		reference, engine model
		mixes             bool
	}{
		"the model":       {mixing, mixing, true},
		"only the engine": {honest, alone, false},
		"the engine is wrong about a case alone": {honest, but(func(_ int, y []float32, batch, _ int) error {
			y[0] += float32(max(2-batch, 0))
			return nil
		}), false},
		"the model gives a row more": {func(run int, x []float32, batch, seq int) ([]float32, error) {
			y, err := honest(run, x, batch, seq)
			return append(y, y[:seq*min(batch-1, 1)]...), err
		}, alone, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.reference = c.reference
			_, reasons, err := w.engine(t, c.engine)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(reasons, func(r evidence.Reason) bool { return r.Code == validators.ReasonBatch })
			if at < 0 {
				t.Fatalf("reasons %v, want one with %s", reasons, validators.ReasonBatch)
			}
			if got := strings.Contains(reasons[at].Message, "as the reference model does"); got != c.mixes {
				t.Errorf("reason %q: names the model %t, want %t", reasons[at].Message, got, c.mixes)
			}
		})
	}
}

// Each fault is found, by its reason and by no other.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		engine model
		code   string
		want   []string // checks that do not pass
		text   string   // in each reason
	}{
		"rows but the first are infinite": {but(func(_ int, y []float32, batch, seq int) error {
			for i := seq; i < batch*seq; i++ {
				y[i] = float32(math.Inf(1))
			}
			return nil
		}), "", []string{"batch batch=2", "dimension batch=16", "dimension all max: batch=16, seq=32"}, ""},
		"the second row of a pair is stale": {but(func(_ int, y []float32, batch, seq int) error {
			if batch == 2 {
				copy(y[seq:], y[:seq])
			}
			return nil
		}), validators.ReasonBatch, []string{"batch batch=2"}, "in a batch cases give something else than alone"},
		"batches of two fail": {but(func(_ int, _ []float32, batch, _ int) error {
			if batch == 2 {
				return errors.New("segmentation fault")
			}
			return nil
		}), validators.ReasonBatch, []string{"batch batch=2"}, "the engine fails, and the reference model does not"},
		"a row of a large batch is stale": {but(func(_ int, y []float32, batch, seq int) error {
			if batch == 16 && seq == values {
				copy(y[8*seq:], y[:seq])
			}
			return nil
		}), validators.ReasonDimension, []string{"dimension batch=16"}, "batch=16: the engine computes something else than the reference model: maxAbs"},
		"wrong at the longest sequence": {but(func(_ int, y []float32, _, seq int) error {
			if seq == 32 {
				y[31] = 0
			}
			return nil
		}), validators.ReasonDimension, []string{"dimension seq=32", "dimension all max: batch=16, seq=32"}, "the engine computes something else than the reference model: maxAbs"},
		"wrong at the shortest sequence": {but(func(_ int, y []float32, _, seq int) error {
			if seq == 1 {
				y[0]++
			}
			return nil
		}), validators.ReasonDimension, []string{"dimension seq=1"}, "seq=1: "},
		"a batch gives one row": {func(run int, x []float32, batch, seq int) ([]float32, error) {
			y, err := honest(run, x, batch, seq)
			return y[:seq], err
		}, "", []string{"batch batch=2", "dimension batch=16", "dimension all max: batch=16, seq=32"}, "shape"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks, reasons, err := setup(t, false).engine(t, c.engine)
			if err != nil {
				t.Fatal(err)
			}
			failed := slices.DeleteFunc(checks, func(p evidence.Check) bool { return p.Verdict == evidence.VerdictPass })
			if got := whats(failed); !slices.Equal(got, c.want) {
				t.Errorf("not passed %q, want %q", got, c.want)
			}
			for _, p := range failed {
				if p.Verdict != evidence.VerdictFail || p.Message == "" {
					t.Errorf("%s %s: %s %q, want a failure with a message", p.Trial, p.Size, p.Verdict, p.Message)
				}
			}
			if len(reasons) != len(c.want) {
				t.Errorf("reasons %v, want one for each of %q", reasons, c.want)
			}
			for _, r := range reasons {
				if c.code != "" && r.Code != c.code || !strings.Contains(r.Message, c.text) {
					t.Errorf("reason %s %q, want %s with %q", r.Code, r.Message, c.code, c.text)
				}
			}
		})
	}
}

// noise is an engine that adds to one value when it runs a case the second time.
func noise(by float32) model {
	seen := make(map[float32]bool)
	return but(func(_ int, y []float32, batch, seq int) error {
		if batch == 1 && seq == values && y[0] == 6 { // case 2
			if seen[y[0]] {
				y[1] += by
			}
			seen[y[0]] = true
		}
		return nil
	})
}

func TestJitter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by      float32
		verdict evidence.Verdict
		reasons int
		text    string
	}{
		"within the limits": {0.005, evidence.VerdictRecorded, 0, "1 of 13 cases differ, by at most 0.005"},
		"beyond the limits": {0.5, evidence.VerdictFail, 1, "1 of 13 cases differ, by at most 0.5 in output y"},
		"NaN":               {float32(math.NaN()), evidence.VerdictFail, 1, "case 2 has NaN in one of the runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks, reasons, err := setup(t, false).engine(t, noise(c.by))
			if err != nil {
				t.Fatal(err)
			}
			p := checks[1] // the run of the cases is the first, that in another process the second
			if p.Trial != evidence.TrialProcess || p.Verdict != c.verdict || p.Affected != 1 || !strings.Contains(p.Message, c.text) {
				t.Errorf("%s: %s, %d affected, %q; want %s for one case with %q", p.Trial, p.Verdict, p.Affected, p.Message, c.verdict, c.text)
			}
			if checks[0].Verdict != evidence.VerdictPass {
				t.Errorf("in one process: %s %q, want a pass", checks[0].Verdict, checks[0].Message)
			}
			if len(reasons) != c.reasons || (c.reasons > 0 && (reasons[0].Code != validators.ReasonJitter || !strings.Contains(reasons[0].Message, c.text))) {
				t.Errorf("reasons %v, want %d of %s with %q", reasons, c.reasons, validators.ReasonJitter, c.text)
			}
		})
	}
	t.Run("in one process", func(t *testing.T) {
		t.Parallel()
		checks, reasons, err := setup(t, false).engine(t, but(func(run int, y []float32, _, _ int) error {
			if run >= 13 { // the cases once more
				y[0]++
			}
			return nil
		}))
		if err != nil || checks[0].Verdict != evidence.VerdictFail || checks[0].Affected != 13 || checks[1].Verdict != evidence.VerdictPass {
			t.Errorf("checks %+v, error %v; want a failure of 13 cases in one process alone", checks[:2], err)
		}
		if !slices.ContainsFunc(reasons, func(r evidence.Reason) bool { return r.Code == validators.ReasonJitter }) {
			t.Errorf("reasons %v, want one with the code jitter", reasons)
		}
	})
}

// Where the reference model fails, the engine does not; nor where time or memory were missing.
func TestNotJudged(t *testing.T) {
	t.Parallel()
	short := but(func(_ int, _ []float32, _, seq int) error {
		if seq == 1 {
			return errors.New("a window of 3 in a sequence of 1")
		}
		return nil
	})
	w := setup(t, false)
	w.reference = short
	checks, reasons, err := w.engine(t, short)
	if err != nil || len(reasons) != 0 {
		t.Fatalf("error %v, reasons %v; want none", err, reasons)
	}
	i := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Size == "seq=1" })
	if p := checks[i]; p.Verdict != evidence.VerdictUndecided ||
		!strings.Contains(p.Message, "the reference model fails: ") || !strings.Contains(p.Message, "a window of 3") {
		t.Errorf("seq=1: %s %q, want undecided, with what the reference model says", p.Verdict, p.Message)
	}
	if n := len(slices.DeleteFunc(checks, func(p evidence.Check) bool { return p.Verdict != evidence.VerdictPass })); n != len(every())-1 {
		t.Errorf("%d checks passed, want all but one", n)
	}
	_, reasons, err = setup(t, false).engine(t, but(func(_ int, _ []float32, batch, _ int) error {
		if batch == 16 {
			return registry.Errorf(registry.CodeUnavailable, "out of memory")
		}
		return nil
	}))
	if err != nil || len(reasons) != 0 {
		t.Errorf("without the memory: error %v, reasons %v; want none", err, reasons)
	}
}

// An engine that does not run the cases again fails, unless the machine can be the cause. The verification of
// others goes on.
func TestNotAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    registry.Code
		verdict evidence.Verdict
		reasons int
	}{
		"a crash":   {registry.CodeInternal, evidence.VerdictFail, 1},
		"no memory": {registry.CodeUnavailable, evidence.VerdictUndecided, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := false
			checks, reasons, err := setup(t, false).engine(t, but(func(run int, _ []float32, _, _ int) error {
				if broken = broken || run == 12; broken && run == 0 {
					return registry.Errorf(c.code, "killed")
				}
				return nil
			}))
			if err != nil || len(reasons) < c.reasons || c.reasons == 0 && len(reasons) > 0 {
				t.Fatalf("error %v, reasons %v; want %d or more reasons", err, reasons, c.reasons)
			}
			if !slices.ContainsFunc(checks, func(p evidence.Check) bool {
				return p.Trial == evidence.TrialRepeat && p.Verdict == c.verdict && strings.Contains(p.Message, "the engine does not run again: ")
			}) {
				t.Errorf("checks %+v, want a repeat with the verdict %s", checks, c.verdict)
			}
		})
	}
}

// What the budget does not hold is named, and what it holds runs on fewer cases.
func TestBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget  time.Duration
		ran     int // checks that are not left out
		repeats int
	}{
		"nothing":       {10 * time.Microsecond, 0, 0},
		"one repeat":    {2 * time.Millisecond, 2, 1},
		"a few repeats": {20 * time.Millisecond, 5, 3},
		"all":           {time.Second, len(every()), 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.o.Budget = c.budget
			checks, _, err := w.engine(t, honest)
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			for _, p := range checks {
				if p.Verdict == evidence.VerdictPass {
					ran++
				} else if !strings.Contains(p.Message, "left out: it would take about") || p.Cases != 0 {
					t.Errorf("%s %s: %s %q, want that it was left out", p.Trial, p.Size, p.Verdict, p.Message)
				}
			}
			if open := len(w.open) > 0; open != (c.ran == 0) {
				t.Errorf("reasons to be undecided %v, want some only where nothing ran", w.open)
			}
			if ran != c.ran || (ran > 0 && checks[0].Cases != c.repeats) {
				t.Errorf("%d checks ran, with %d repeats; want %d with %d", ran, checks[0].Cases, c.ran, c.repeats)
			}
		})
	}
}

// A size that takes too much memory is made smaller, and the report says so.
func TestBytes(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.o.Interface.Dims["seq"] = validators.DimRange{Min: 1, Opt: 4, Max: 1 << 30}
	w.o.MaxBytes = 1 << 20
	checks, reasons, err := w.engine(t, honest)
	if err != nil || len(reasons) != 0 {
		t.Fatalf("error %v, reasons %v; want none", err, reasons)
	}
	want := fmt.Sprintf("seq=%d", 1<<17) // 2^17 elements of 4 bytes, in and out
	i := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Size == want })
	if i < 0 || checks[i].Verdict != evidence.VerdictPass || checks[i].Cases != 1 ||
		checks[i].Message != "declared is seq=1073741824, which takes more than 1 MiB" {
		t.Errorf("checks %+v, want %s with one case and a note about the declared size", checks, want)
	}
}

// Where one size is at its smallest, the others still become smaller.
func TestBytesOfAllSizes(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.o.Interface.Dims["batch"] = validators.DimRange{Min: 2, Opt: 2, Max: 3}
	w.o.Interface.Dims["seq"] = validators.DimRange{Min: 1 << 17, Opt: 1 << 17, Max: 1<<18 - 1}
	for most, fits := range map[int64]bool{2 << 20: true, 2<<20 - 1: false} { // 2 times 2^17 elements of 4 bytes, in and out
		w.o.MaxBytes = most
		checks, _, err := w.engine(t, honest)
		i := slices.IndexFunc(checks, func(p evidence.Check) bool {
			return p.Size == fmt.Sprintf("all max: batch=2, seq=%d", 1<<17) && !strings.Contains(p.Message, "one case takes more")
		})
		if err != nil || (i >= 0) != fits {
			t.Errorf("%d bytes: checks %+v (%v), want one of all sizes that fits: %t", most, checks, err, fits)
		}
	}
}

// What a mask leaves out does not count, in batches and at other sizes neither.
func TestMask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at     int // the place in a sequence that the engine gets wrong
		failed bool
	}{"masked": {3, false}, "counts": {2, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.where = "mask"
			w.o.Interface.Inputs = append(w.o.Interface.Inputs, w.o.Interface.Inputs[0])
			w.o.Interface.Inputs[1].Name = "mask"
			w.spread(t, "mask", func(cases int) (tensor.Tensor, error) {
				return tensor.New(slices.Repeat([]float32{1, 1, 1, 0}, cases), int64(cases), values)
			})
			_, reasons, err := w.engine(t, but(func(_ int, y []float32, batch, seq int) error {
				for i := c.at; i < len(y); i += values {
					if batch > 1 || seq > values {
						y[i] = 0
					}
				}
				return nil
			}))
			if err != nil || (len(reasons) > 0) != c.failed {
				t.Errorf("reasons %v, error %v; want some: %t", reasons, err, c.failed)
			}
		})
	}
}

// Without open dimensions only the repeats are left, and it is said why there are no batches.
func TestFixedShape(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	fixed := []validators.Dim{{Size: 1}, {Size: values}}
	w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape, w.o.Interface.Dims = fixed, fixed, nil
	checks, _, err := w.engine(t, honest)
	if want := []string{"repeat", "process", "beyond inputs*2", "batch"}; err != nil || !slices.Equal(whats(checks), want) {
		t.Fatalf("checks %q, error %v; want %q", whats(checks), err, want)
	}
	if batch := checks[3]; !batch.NotForModel() || !strings.Contains(batch.Message, `input "x" has the fixed size 1 in front`) {
		t.Errorf("batches %+v, want none for this model", batch)
	}
}

// A check in which nothing could be compared is undecided, and says why.
func TestNothingCompared(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.judge = func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason) {
		return evidence.VerdictUndecided, []evidence.Reason{{Message: "no element of output y counted"}}
	}
	checks, reasons, err := w.engine(t, honest)
	if err != nil || len(reasons) > 0 {
		t.Fatalf("error %v, reasons %v; want none", err, reasons)
	}
	for _, p := range checks[2 : len(checks)-1] { // repeats are compared bit by bit, and values beyond the cases only have to be finite
		if p.Verdict != evidence.VerdictUndecided || !strings.Contains(p.Message, "not judged: no element of output y counted") {
			t.Errorf("%s %s: %s %q, want undecided with the reason", p.Trial, p.Size, p.Verdict, p.Message)
		}
	}
}

// An engine that hangs is undecided, and the reason names the check; the others still run. Where
// the reference model hangs, too, that is no fault of the engine.
func TestHang(t *testing.T) {
	t.Parallel()
	hangs := but(func(_ int, _ []float32, batch, _ int) error {
		if batch == 2 {
			return registry.Errorf(registry.CodeUnavailable, "%w, 30.0 s", consistency.ErrStopped)
		}
		return nil
	})
	for name, c := range map[string]struct {
		reference model
		open      []string
	}{
		"the engine alone":             {honest, []string{"check batch batch=2 did not end"}},
		"the reference model likewise": {hangs, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.reference = c.reference
			checks, reasons, err := w.engine(t, hangs)
			if err != nil || len(reasons) > 0 {
				t.Fatalf("error %v, reasons %v; want none", err, reasons)
			}
			undecided := slices.DeleteFunc(checks, func(p evidence.Check) bool { return p.Verdict == evidence.VerdictPass })
			if got, want := whats(undecided), []string{"batch batch=2"}; !slices.Equal(got, want) {
				t.Errorf("undecided %q, want %q", got, want)
			}
			if len(w.open) != len(c.open) {
				t.Fatalf("reasons to be undecided %v, want %q", w.open, c.open)
			}
			for i, r := range w.open {
				if r.Code != validators.ReasonNotRun || !strings.Contains(r.Message, c.open[i]) {
					t.Errorf("reason %s %q, want %s with %q", r.Code, r.Message, validators.ReasonNotRun, c.open[i])
				}
			}
		})
	}
}

// Batches are as large as the model takes. One of more than eight is a size of its own.
func TestSizesOfBatches(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64][]string{
		1: nil,
		2: {"batch batch=2"},
		3: {"batch batch=2", "batch batch=3"},
		8: {"batch batch=2", "batch batch=8"},
		9: {"batch batch=2", "dimension batch=9"},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.o.Interface.Dims["batch"] = validators.DimRange{Min: 1, Opt: 1, Max: most}
			checks, _, err := w.engine(t, honest)
			got := slices.DeleteFunc(whats(checks), func(what string) bool {
				return !strings.Contains(what, "batch=") || strings.Contains(what, "all max")
			})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("tried %q, error %v; want %q", got, err, want)
			}
		})
	}
}

// One size of a batch is drawn, between two and the largest.
func TestDrawnSizes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most int64
		want []string
	}{
		"none is between":   {3, []string{"batch batch=3"}},
		"three":             {4, []string{"batch batch=4", "batch batch=3"}},
		"up to 63":          {64, []string{"dimension batch=64", "dimension batch=63"}},
		"no larger batches": {1, nil},
	} {
		w := setup(t, false)
		w.o.Interface.Dims["batch"] = validators.DimRange{Min: 1, Opt: 1, Max: c.most}
		w.o.Draw = func(n int) int { return n - 1 }
		checks, _, err := w.engine(t, honest)
		got := slices.DeleteFunc(whats(checks), func(what string) bool {
			return !strings.Contains(what, "batch=") || what == "batch batch=2" || strings.Contains(what, "all m")
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: tried %q, error %v; want %q", name, got, err, c.want)
		}
	}
}

// A symbol is the batch only where it leads every tensor and is nowhere else.
func TestWhatIsABatch(t *testing.T) {
	t.Parallel()
	batch, seq, fixed := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "seq"}, validators.Dim{Size: values}
	for name, c := range map[string]struct {
		input, output []validators.Dim
		batches       bool
	}{
		"it leads both":                {[]validators.Dim{batch, fixed}, []validators.Dim{batch, fixed}, true},
		"the output has a fixed one":   {[]validators.Dim{batch, fixed}, []validators.Dim{{Size: 1}, fixed}, false},
		"the output has another one":   {[]validators.Dim{batch, fixed}, []validators.Dim{seq, fixed}, false},
		"the output is one number":     {[]validators.Dim{batch, fixed}, nil, false},
		"it is also a later dimension": {[]validators.Dim{batch, seq}, []validators.Dim{batch, batch}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape = c.input, c.output
			checks, _, err := w.engine(t, honest)
			if got := slices.ContainsFunc(whats(checks), func(what string) bool { return strings.HasPrefix(what, "batch ") }); err != nil || got != c.batches {
				t.Errorf("tried %q, error %v; want batches %t", whats(checks), err, c.batches)
			}
		})
	}
}
