package consistency_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// batchAlone leaves the batch open alone.
func batchAlone(w *trying, most int64) {
	open := []validators.Dim{{Symbol: "batch"}, {Size: values}}
	w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape = open, open
	w.o.Interface.Dims = map[string]validators.DimRange{"batch": {Min: 1, Opt: 1, Max: most}}
}

// The reference model runs on batches only if the engine gives a reason to.
func TestReferenceOfBatches(t *testing.T) {
	t.Parallel()
	far := func(by float32, least int) func(int, []float32, int, int) error {
		return func(_ int, y []float32, batch, _ int) error {
			for i := range y {
				if batch >= least {
					y[i] += by
				} else {
					y[i] -= by
				}
			}
			return nil
		}
	}
	broken := but(func(_ int, _ []float32, batch, _ int) error {
		if batch == 16 {
			return errors.New("a batch of 16")
		}
		return nil
	})
	for name, c := range map[string]struct {
		reference, engine model
		processes         int // of the reference model
		verdict           evidence.Verdict
		baseline          evidence.Baseline // of the largest batch
	}{
		"an engine that is right":                        {honest, honest, 0, evidence.VerdictPass, evidence.BaselineItself},
		"a large batch that is off to the other side":    {honest, but(far(0.008, 16)), 1, evidence.VerdictPass, evidence.BaselineReference},
		"a large batch that is wrong":                    {honest, but(far(0.02, 16)), 1, evidence.VerdictFail, evidence.BaselineReference},
		"one that the reference model does not run":      {broken, but(far(0.008, 16)), 1, evidence.VerdictUndecided, evidence.BaselineReference},
		"an engine that crashes":                         {honest, broken, 1, evidence.VerdictFail, evidence.BaselineReference},
		"one that crashes where the reference does, too": {broken, broken, 1, evidence.VerdictUndecided, evidence.BaselineReference},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			batchAlone(w, 16)
			set, engine := w.ready(t, c.engine)
			processes := 0
			if err := set.Reference(t.Context(), c.reference.runner(t, &processes)); err != nil || processes != 0 {
				t.Fatalf("error %v after %d processes of the reference model, want none", err, processes)
			}
			for range 2 { // what the reference model gave is kept for the next engine
				found, err := set.Engine(t.Context(), engine, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				at := slices.IndexFunc(found.Checks, func(p evidence.Check) bool { return p.Size == "batch=16" })
				if at < 0 || found.Checks[at].Verdict != c.verdict || found.Checks[at].Baseline != c.baseline {
					t.Errorf("checks %+v, want %s of batch=16 against %s", found.Checks, c.verdict, c.baseline)
				}
			}
			if processes != c.processes {
				t.Errorf("%d processes of the reference model, want %d", processes, c.processes)
			}
		})
	}
}

// A batch larger than the shard with the most cases has them several times, and the optimal size is tried as well.
func TestOptimalBatch(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	batchAlone(w, 16)
	w.o.Interface.Dims["batch"] = validators.DimRange{Min: 1, Opt: 12, Max: 16}
	checks, reasons, err := w.engine(t, honest)
	want := []string{"repeat", "process", "batch batch=2", "dimension batch=12", "dimension batch=16", "beyond inputs*2"}
	if got := whats(checks); err != nil || len(reasons) > 0 || !slices.Equal(got, want) {
		t.Errorf("checks %q, reasons %v, error %v; want %q", got, reasons, err, want)
	}
}

// A batch that takes too much memory is made smaller, and the report has the declared size.
func TestLargeBatchOfManyBytes(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	batchAlone(w, 1<<20)
	w.o.MaxBytes = 1 << 10
	checks, _, err := w.engine(t, honest)
	at := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Size == "batch=32" })
	if err != nil || at < 0 || checks[at].Verdict != evidence.VerdictPass || !strings.HasPrefix(checks[at].Message, "declared is batch=1048576, which takes more than 0 MiB") {
		t.Errorf("checks %+v, error %v; want batch=32 with the declared size", checks, err)
	}
}

// A model with slow cases is loaded with few of them, so that it is loaded often.
func TestLoadsOfASlowModel(t *testing.T) {
	t.Parallel()
	for run, want := range map[time.Duration]int{0: 16, time.Second / (2 * 16 * 8): 16, 10 * time.Millisecond: 6, time.Second: 4} {
		w := setup(t, false)
		batchAlone(w, 2)
		w.o.Run, w.o.Budget, w.loads = run, time.Hour, []model{honest, honest}
		set, engine := w.ready(t, honest)
		load, ran := engine.Load, 0
		engine.Load = func(ctx context.Context, inputs []consistency.Input, dir string) ([]string, error) {
			for _, in := range inputs {
				x, err := tensorfile.ReadFile(in.Path, tensorfile.Limits{})
				if err != nil {
					return nil, err
				}
				ran += len(x["x"].Data) / 4 / values
			}
			return load(ctx, inputs, dir)
		}
		found, err := set.Engine(t.Context(), engine, t.TempDir())
		loads, ok := found.Checks.Of(evidence.TrialLoad)
		// Of eight cases one is of the shard of three, and each shard has whole batches.
		if near := math.Abs(float64(ran-want)) <= 1; err != nil || !ok || loads.Verdict != evidence.VerdictPass || set.LoadCases() != want || !near {
			t.Errorf("%v for a case: %d cases of %d ran with each load, %+v, error %v; want a pass of %d", run, ran, set.LoadCases(), loads, err, want)
		}
	}
}

// A load that computes something else in the few batches that are loaded is found.
func TestWrongLoadOfASlowModel(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	batchAlone(w, 2)
	wrong := but(func(_ int, y []float32, batch, _ int) error { y[len(y)-1] += float32(batch - 1); return nil })
	w.o.Run, w.o.Budget, w.loads = time.Second, time.Hour, []model{honest, wrong}
	checks, _, err := w.engine(t, honest)
	loads, _ := checks.Of(evidence.TrialLoad)
	if err != nil || loads.Verdict != evidence.VerdictFail || !strings.Contains(loads.Message, "after load 2 of 2 in one process, batch=2, 1 of 2 cases differ") {
		t.Errorf("%+v, error %v; want a failure of one case of a batch", loads, err)
	}
}

// Repeated runs that are asked for are in addition to the budget. With few cases, each takes more turns.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repeats, wrong int // how many runs are asked for, and which run gives something else
		fails          bool
	}{
		"as the budget allows":     {0, 100, false},
		"many":                     {346, 345, true},
		"many, all are right":      {346, 1000, false},
		"many, the first is wrong": {346, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			repeatsAlone(w)
			w.o.Repeats, w.o.Budget = c.repeats, 40*time.Millisecond
			set, engine := w.ready(t, honest)
			processes := 0
			engine.Run = but(func(run int, y []float32, _, _ int) error {
				if run == c.wrong {
					y[0]++
				}
				return nil
			}).runner(t, &processes)
			found, err := set.Engine(t.Context(), engine, t.TempDir())
			again, _ := found.Checks.Of(evidence.TrialRepeat)
			process, _ := found.Checks.Of(evidence.TrialProcess)
			if err != nil || process.Cases > 13 || (len(found.Failed) > 0) != c.fails {
				t.Errorf("checks %+v, reasons %v, error %v; want a failure: %t", found.Checks, found.Failed, err, c.fails)
			}
			if runs := set.Repeated(); runs < c.repeats || runs != again.Cases+process.Cases {
				t.Errorf("%d runs, want %d or more", runs, c.repeats)
			}
		})
	}
}

// Values beyond the cases are compared with the reference model's only if one is not finite.
func TestReferenceBeyond(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	repeatsAlone(w)
	w.judge = func(trial evidence.Trial, outputs map[string]tensor.Result, cases int) (evidence.Verdict, []evidence.Reason) {
		return validators.JudgeFinite(outputs).Verdict()
	}
	for infinite, want := range map[bool]int{false: 0, true: 1} {
		engine := honest
		if infinite {
			engine = func(run int, x []float32, batch, seq int) ([]float32, error) {
				y, err := honest(run, x, batch, seq)
				if x[0] > 13 {
					y[0] = float32(math.Inf(1))
				}
				return y, err
			}
		}
		set, e := w.ready(t, engine)
		processes := 0
		if err := set.Reference(t.Context(), w.reference.runner(t, &processes)); err != nil {
			t.Fatal(err)
		}
		w.o.Scratch = t.TempDir()
		if _, err := set.Engine(t.Context(), e, t.TempDir()); err != nil || processes != want {
			t.Errorf("infinite %t: %d processes of the reference model, error %v; want %d", infinite, processes, err, want)
		}
	}
}
