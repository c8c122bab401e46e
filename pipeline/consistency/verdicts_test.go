package consistency_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// An engine whose outputs must not differ fails by the smallest difference between two runs; beyond the limits of
// others, these are the reason.
func TestExact(t *testing.T) {
	t.Parallel()
	for by, text := range map[float32]string{0: "", 0.005: "the limits allow no jitter", 0.5: "maxAbs is 0.5"} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.exact = true
			checks, reasons, err := w.engine(t, noise(by))
			if text == "" {
				if err != nil || len(reasons) > 0 {
					t.Errorf("reasons %v, error %v; want none without jitter", reasons, err)
				}
				return
			}
			if err != nil || len(reasons) != 1 || !strings.Contains(reasons[0].Message, text) || checks[1].Verdict != evidence.VerdictFail {
				t.Errorf("%s, reasons %v, error %v; want a failure that says %q", checks[1].Verdict, reasons, err, text)
			}
		})
	}
}

// NaN in one of two runs fails whatever the limits say.
func TestNaNInOneRun(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.judge = func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason) {
		return evidence.VerdictPass, nil
	}
	checks, reasons, err := w.engine(t, noise(float32(math.NaN())))
	if err != nil || len(reasons) != 1 || checks[1].Verdict != evidence.VerdictFail {
		t.Errorf("%s %q, reasons %v, error %v; want a failure", checks[1].Verdict, checks[1].Message, reasons, err)
	}
}

// The rows of a batch are counted: one too many, and one number for all.
func TestRowsOfABatch(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	checks, reasons, err := w.engine(t, func(run int, x []float32, batch, seq int) ([]float32, error) {
		y, err := honest(run, x, batch, seq)
		if batch > 1 {
			y = append(y, y[:seq]...)
		}
		return y, err
	})
	i := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Size == "batch=2" })
	const more, one = "of a batch has the shape [3 4], want 2 in front", "of a batch has the shape []"
	if err != nil || len(reasons) == 0 || checks[i].Verdict != evidence.VerdictFail || !strings.Contains(checks[i].Message, more) {
		t.Errorf("a row too many: %+v, error %v; want a failure that names the shape", checks[i], err)
	}
	checks, reasons, err = setup(t, false).engine(t, func(run int, x []float32, batch, seq int) ([]float32, error) {
		if batch > 1 {
			return []float32{1}, nil
		}
		return honest(run, x, batch, seq)
	})
	if err != nil || len(reasons) == 0 || checks[i].Verdict != evidence.VerdictFail || !strings.Contains(checks[i].Message, one) {
		t.Errorf("one number: %+v, error %v; want a failure that names the shape", checks[i], err)
	}
}

// Time that was missing for every check leaves an engine undecided. Memory that was missing does not.
func TestNoTimeForAnyCheck(t *testing.T) {
	t.Parallel()
	fails := func(err error) model { return but(func(int, []float32, int, int) error { return err }) }
	memory := fails(registry.Errorf(registry.CodeUnavailable, "out of memory"))
	noTime := fails(registry.Errorf(registry.CodeUnavailable, "%w", consistency.ErrNoTime))
	for name, c := range map[string]struct {
		reference, engine model
		open              bool
		says              string
	}{
		"of the engine":                                 {honest, noTime, true, "no time is left"},
		"of the reference model":                        {noTime, memory, true, "the reference model did not run: "},
		"memory of the engine":                          {honest, memory, false, "out of memory"},
		"memory of both":                                {memory, memory, false, "the reference model fails: "},
		"of the reference model, while the engine runs": {noTime, honest, false, "the reference model did not run: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.reference = c.reference
			set, engine := w.ready(t, honest)
			processes := 0
			engine.Run = c.engine.runner(t, &processes)
			found, err := set.Engine(t.Context(), engine, t.TempDir())
			if err != nil || len(found.Failed) > 0 || len(found.Open) > 0 != c.open {
				t.Errorf("failed %v, open %v, error %v; want no failure, and a reason to be undecided: %t", found.Failed, found.Open, err, c.open)
			}
			for _, r := range found.Open {
				if r.Code != validators.ReasonNotRun || !strings.Contains(r.Message, "no consistency check could be done") {
					t.Errorf("reason %s %q, want %s and that no check could be done", r.Code, r.Message, validators.ReasonNotRun)
				}
			}
			if !slices.ContainsFunc(found.Checks, func(p evidence.Check) bool { return strings.Contains(p.Message, c.says) }) {
				t.Errorf("checks %+v, want one with %q", found.Checks, c.says)
			}
		})
	}
}

// A check that fails keeps the note about the size that was declared.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, reference := range map[string]bool{"the engine": false, "the reference model": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.o.Interface.Dims["seq"] = validators.DimRange{Min: 1, Opt: 4, Max: 1 << 30}
			w.o.MaxBytes = 1 << 20
			broken := but(func(_ int, _ []float32, _, seq int) error {
				if seq > values {
					return errors.New("too long")
				}
				return nil
			})
			if reference {
				w.reference = broken
			}
			checks, _, err := w.engine(t, broken)
			i := slices.IndexFunc(checks, func(p evidence.Check) bool {
				return strings.Contains(p.Message, "declared is seq=1073741824")
			})
			if err != nil || i < 0 || !strings.Contains(checks[i].Message, "more than 1 MiB; ") || !strings.Contains(checks[i].Message, "too long") {
				t.Errorf("checks %+v, error %v; want one that says the declared size and why it failed", checks, err)
			}
			for _, p := range checks {
				if strings.HasPrefix(p.Message, "; ") {
					t.Errorf("%s %s says %q, which begins with nothing", p.Trial, p.Size, p.Message)
				}
			}
		})
	}
}

// With little memory one case is left of each check, and no size that is larger.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.o.MaxBytes = 1
	checks, reasons, err := w.engine(t, honest)
	if err != nil || len(reasons) > 0 {
		t.Fatalf("error %v, reasons %v; want none", err, reasons)
	}
	for _, p := range checks {
		switch {
		case p.Trial == evidence.TrialDimension:
			if p.Verdict != evidence.VerdictUndecided || !strings.HasPrefix(p.Message, "left out: ") || !strings.HasSuffix(p.Message, " takes more than 0 MiB") {
				t.Errorf("%s: %s %q, want that it was left out", p.Size, p.Verdict, p.Message)
			}
		case p.Cases != 1:
			t.Errorf("%s %s has %d cases, want 1", p.Trial, p.Size, p.Cases)
		}
	}
}

// Cases that contradict themselves have no sizes to change.
func TestCasesThatContradictThemselves(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.o.Interface.Inputs = append(w.o.Interface.Inputs, w.o.Interface.Inputs[0])
	w.o.Interface.Inputs[1].Name = "z"
	w.spread(t, "z", func(cases int) (tensor.Tensor, error) { return tensor.New(make([]float32, 3*cases), int64(cases), 3) })
	checks, _, err := w.engine(t, honest)
	const says = "left out: the cases have seq=4 and seq=3 in one case"
	if p := checks[len(checks)-1]; err != nil || p.Trial != evidence.TrialDimension || p.Message != says {
		t.Errorf("%s %q, error %v; want that the sizes contradict each other", p.Trial, p.Message, err)
	}
}

// A larger batch is made of different cases, and cases run again in another order than before.
func TestWhatIsRun(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	set, engine := w.ready(t, honest)
	first := make(map[string][]float32) // the first value of each case or row
	run := engine.Run
	engine.Run = func(ctx context.Context, inputs []consistency.Input, dir string) (string, error) {
		for _, in := range inputs {
			read, err := tensorfile.ReadFile(in.Path, tensorfile.Limits{})
			if err != nil {
				return "", err
			}
			all, err := tensor.Values[float32](read["x"])
			if err != nil {
				return "", err
			}
			for at := 0; at < len(all); at += values {
				first[in.Name] = append(first[in.Name], all[at])
			}
		}
		return run(ctx, inputs, dir)
	}
	if _, err := set.Engine(t.Context(), engine, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float32{
		"check-0-again-00000.safetensors":     {10, 9, 8, 7, 6, 5, 4, 3, 2, 1},
		"check-1-once-00000.safetensors":      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"check-2-000-batch-00000.safetensors": {8, 6, 3, 1},
		"check-2-001-batch-00000.safetensors": {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 10, 9, 8, 7, 6, 5},
	} {
		if !slices.Equal(first[name], want) {
			t.Errorf("%s has the cases %v, want %v", name, first[name], want)
		}
	}
	batch := first["check-3-004-sizes.safetensors"] // each case is repeated to a length of 32
	if distinct := slices.Compact(slices.Sorted(slices.Values(batch))); len(batch) != 16*32/values || len(distinct) != 8 {
		t.Errorf("the batch of 16 of the largest length has the cases %v, want all eight", batch)
	}
}

// An engine that overflows beyond the range of the cases is found, and what the reference model does as well is no fault.
func TestBeyond(t *testing.T) {
	t.Parallel()
	overflows := func(run int, x []float32, batch, seq int) ([]float32, error) {
		y, err := honest(run, x, batch, seq)
		for i := range y {
			if x[i] > 13 { // the cases end at 13
				y[i] = float32(math.Inf(1))
			}
		}
		return y, err
	}
	for name, c := range map[string]struct {
		reference, engine model
		fails             bool
	}{"only the engine": {honest, overflows, true}, "both": {overflows, overflows, false}, "neither": {honest, honest, false}} {
		w := setup(t, false)
		w.reference, w.judge = c.reference, func(trial evidence.Trial, outputs map[string]tensor.Result, cases int) (evidence.Verdict, []evidence.Reason) {
			if validators.TrialOf(trial).Finite {
				return validators.JudgeFinite(outputs).Verdict()
			}
			return judge(trial, outputs, cases)
		}
		checks, reasons, err := w.engine(t, c.engine)
		beyond, ran := checks.Of(evidence.TrialBeyond)
		found := slices.ContainsFunc(reasons, func(r evidence.Reason) bool { return r.Code == validators.ReasonBeyond })
		if err != nil || !ran || (beyond.Verdict == evidence.VerdictFail) != c.fails || found != c.fails {
			t.Errorf("%s: %+v with reasons %v (%v), want a failure: %t", name, beyond, reasons, err, c.fails)
		}
	}
}

// An engine that fails the only check has one process, and where no time is known for a case, everything runs.
func TestProcesses(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.o.Budget = w.o.Run // for seq=1 alone
	_, reasons, err := w.engine(t, but(func(_ int, _ []float32, _, seq int) error {
		if seq == 1 {
			return errors.New("too short")
		}
		return nil
	}))
	if err != nil || len(reasons) != 1 || w.processes != 1 {
		t.Errorf("reasons %v, error %v, %d processes; want one reason and one process", reasons, err, w.processes)
	}
	w = setup(t, false)
	w.o.Run = 0
	if checks, _, err := w.engine(t, honest); err != nil || !slices.Equal(whats(checks), every()) {
		t.Errorf("checks %q, error %v; want %q", whats(checks), err, every())
	}
}

// NaN in one output in the first run and in another output in the second is a difference, too.
func TestNaNInDifferentOutputs(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	repeatsAlone(w)
	w.o.Interface.Outputs = append(w.o.Interface.Outputs, w.o.Interface.Outputs[0])
	w.o.Interface.Outputs[1].Name = "z"
	w.judge = func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason) {
		return evidence.VerdictPass, nil
	}
	set, engine := w.ready(t, honest)
	second := func(dir, file, spoilt string) {
		path := filepath.Join(dir, file)
		read, err := tensorfile.ReadFile(path, tensorfile.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		read["z"] = read["y"]
		if y := read["y"]; spoilt != "" {
			if read[spoilt], err = tensor.New(slices.Repeat([]float32{float32(math.NaN())}, len(y.Data)/4), y.Shape...); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, path, read)
	}
	for _, s := range w.o.Shards {
		second(engine.Outputs, s.File, "")
	}
	run := engine.Run
	engine.Run = func(ctx context.Context, inputs []consistency.Input, dir string) (string, error) {
		out, err := run(ctx, inputs, dir)
		for _, in := range inputs {
			spoilt := "y"
			if strings.HasPrefix(in.Name, "check-1-once") {
				spoilt = "z"
			}
			second(out, in.Name, spoilt)
		}
		return out, err
	}
	engine.Comparison.Outputs["z"] = tensor.Options{}
	found, err := set.Engine(t.Context(), engine, t.TempDir())
	if err != nil || found.Checks[0].Verdict != evidence.VerdictFail || !strings.Contains(found.Checks[0].Message, "has NaN in one of the runs") {
		t.Errorf("checks %+v, error %v; want a failure in one process that names NaN", found.Checks, err)
	}
}

// Sizes that cannot be made of cases without any are named, as other checks that did not run; the others run.
func TestSizesOfNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.spread(t, "z", func(n int) (tensor.Tensor, error) { return tensor.New([]float32{}, int64(n), 0) })
	w.o.Interface.Inputs = append(w.o.Interface.Inputs,
		validators.TensorInfo{Name: "z", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Symbol: "k"}}})
	w.o.Interface.Dims["k"] = validators.DimRange{Min: 0, Opt: 2, Max: 8}
	checks, reasons, err := w.engine(t, honest)
	if err != nil || len(reasons) != 0 {
		t.Fatalf("error %v, reasons %v; want none", err, reasons)
	}
	for _, what := range []string{"k=2", "k=8", "seq=32"} {
		i := slices.IndexFunc(checks, func(p evidence.Check) bool {
			return p.Trial == evidence.TrialDimension && p.Size == what
		})
		if i < 0 {
			t.Errorf("no check of %s in %+v", what, checks)
			continue
		}
		left := strings.Contains(checks[i].Message, "left out: the size is 0 in the cases")
		if p := checks[i]; left != (what != "seq=32") || left && p.Verdict != evidence.VerdictUndecided {
			t.Errorf("%s: %s %q, want undecided where it is made of nothing", what, p.Verdict, p.Message)
		}
	}
}
