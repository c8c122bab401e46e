package consistency_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// An engine that computes something else in one of its loads fails, and the reason says in which.
func TestLoads(t *testing.T) {
	t.Parallel()
	off := func(by float32) model {
		return but(func(_ int, y []float32, _, _ int) error { y[0] += by; return nil })
	}
	inPairs := but(func(_ int, y []float32, batch, _ int) error {
		if batch == 2 {
			y[0]++
		}
		return nil
	})
	late := but(func(run int, y []float32, _, _ int) error {
		if run == 5 {
			y[0]++
		}
		return nil
	})
	shortened := func(run int, x []float32, batch, seq int) ([]float32, error) {
		y, err := honest(run, x, batch, seq)
		if batch == 2 {
			y = y[:seq]
		}
		return y, err
	}
	crashed := func(int, []float32, int, int) ([]float32, error) { return nil, errors.New("segmentation fault") }
	starved := func(int, []float32, int, int) ([]float32, error) {
		return nil, registry.Errorf(registry.CodeUnavailable, "out of memory")
	}
	const pass, fail, recorded, undecided = evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictRecorded, evidence.VerdictUndecided
	for name, c := range map[string]struct {
		loads    []model
		verdict  evidence.Verdict
		affected int
		maxAbs   float64
		says     string // part of the message
	}{
		"all the same":           {[]model{honest, honest, honest}, pass, 0, 0, ""},
		"one is off":             {[]model{honest, off(1), honest}, fail, 7, 1, "run again after load 2 of 3 in one process, 7 of 7 cases differ, by at most 1 in output y"},
		"the first is off":       {[]model{off(1), honest}, fail, 7, 1, "after load 1 of 2"},
		"the last is off":        {[]model{honest, off(1)}, fail, 7, 1, "after load 2 of 2"},
		"one case is off":        {[]model{honest, late}, fail, 1, 1, "1 of 7 cases differ"},
		"batches are off":        {[]model{honest, inPairs}, fail, 4, 1, "after load 2 of 2 in one process, batch=2, 4 of 8 cases differ"},
		"a batch lacks a row":    {[]model{honest, shortened}, fail, 0, 0, "batch=2: output y of a batch has the shape [1 4], want 2 in front"},
		"within the limits":      {[]model{off(0.001), off(0.005), off(0.002)}, recorded, 7, 0.005, "after load 2 of 3"},
		"NaN":                    {[]model{honest, off(float32(math.NaN()))}, fail, 7, math.Inf(1), "has NaN in one of the runs"},
		"it crashes":             {[]model{crashed}, fail, 0, 0, "the engine does not run where it is loaded several times: "},
		"there is no memory":     {[]model{starved}, undecided, 0, 0, "out of memory"},
		"nothing is loaded":      {[]model{}, fail, 0, 0, "nothing was loaded"},
		"it is not loaded again": {nil, "", 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			w.loads = c.loads
			checks, reasons, err := w.engine(t, honest)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Trial == evidence.TrialLoad })
			if c.loads == nil {
				if at >= 0 || len(reasons) > 0 {
					t.Errorf("checks %+v, reasons %+v; want none of loads", checks, reasons)
				}
				return
			}
			if at != 2 {
				t.Fatalf("the check of loads is at %d of %q, want it behind those of runs", at, whats(checks))
			}
			got := checks[at]
			near := float64(got.Value) == c.maxAbs || math.Abs(float64(got.Value)-c.maxAbs) < 1e-5
			if got.Verdict != c.verdict || got.Affected != c.affected || !near || !strings.Contains(got.Message, c.says) {
				t.Errorf("got %+v; want %s, %d affected by %v, %q", got, c.verdict, c.affected, c.maxAbs, c.says)
			}
			if ran := c.verdict != undecided && len(c.loads) > 1; ran && (got.Size == "" || got.Cases != 7) {
				t.Errorf("got %q of %d cases, want the number of loads, and 7", got.Size, got.Cases)
			}
			var codes []string
			for _, r := range reasons {
				codes = append(codes, r.Code)
			}
			if want := map[bool][]string{true: {validators.ReasonJitter}}[c.verdict == fail]; !slices.Equal(codes, want) {
				t.Errorf("reasons %q, want %q", codes, want)
			}
		})
	}
}

// Where batches did not run before, loads run the cases alone.
func TestLoadsWithoutBatches(t *testing.T) {
	t.Parallel()
	noPairs := but(func(_ int, _ []float32, batch, _ int) error {
		if batch > 1 {
			return errors.New("batches are not taken")
		}
		return nil
	})
	for name, reference := range map[string]model{"by the engine": honest, "by either": noPairs} {
		w := setup(t, false)
		w.reference, w.loads = reference, []model{noPairs, noPairs}
		checks, _, err := w.engine(t, noPairs)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Trial == evidence.TrialLoad })
		if at < 0 || checks[at].Verdict != evidence.VerdictPass || checks[at].Cases != 7 {
			t.Errorf("%s: checks %+v, want a pass of 7 cases for loads", name, checks)
		}
	}
}

// Limits that allow no difference between runs allow none between loads.
func TestLoadsWithoutJitter(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.exact = true
	w.loads = []model{honest, but(func(_ int, y []float32, _, _ int) error { y[0] += 0.001; return nil })}
	checks, reasons, err := w.engine(t, honest)
	if err != nil || len(reasons) != 1 || !strings.Contains(reasons[0].Message, "the limits allow no jitter") {
		t.Errorf("checks %+v, reasons %+v, error %v; want that the limits allow none", checks, reasons, err)
	}
}

// Outputs of a load that are not there are no pass, and neither is a context that ended.
func TestLoadsThatAreLost(t *testing.T) {
	t.Parallel()
	w := setup(t, false)
	w.loads = []model{honest}
	set, engine := w.ready(t, honest)
	load := engine.Load
	for _, lost := range []string{"check-0-load-00000.safetensors", "check-2-000-batch-00000.safetensors"} {
		engine.Load = func(ctx context.Context, inputs []consistency.Input, dir string) ([]string, error) {
			outputs, err := load(ctx, inputs, dir)
			if err != nil {
				return nil, err
			}
			return outputs, os.Remove(filepath.Join(outputs[0], lost))
		}
		if found, err := set.Engine(t.Context(), engine, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: found %+v, error %v; want that it is missing", lost, found, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	engine.Load = func(context.Context, []consistency.Input, string) ([]string, error) {
		stop()
		return nil, ctx.Err()
	}
	if found, err := set.Engine(ctx, engine, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: found %+v, error %v; want that it was", found, err)
	}
}
