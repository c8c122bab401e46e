//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// tuned is a spec of two variants to try. The first is the one that the spec has now.
const tuned = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32]
targets: [linux/amd64/v1]
tune: {variants: [{name: int8, quantize: {method: dynamic}}]}
objective: {max: accuracy}
`

// tune tunes a spec for at most a budget.
func (w *world) tune(t *testing.T, text string, budget time.Duration) (tune.Result, error) {
	t.Helper()
	return tune.Tune(t.Context(), w.p, w.spec(t, text), tune.Options{Budget: budget})
}

// labels lists the trials of a tuning.
func labels(trials []tune.Trial) []string {
	var all []string
	for _, trial := range trials {
		all = append(all, trial.Label())
	}
	return all
}

// Every candidate is compared with the reference model and timed, and the objective chooses. Nothing is published.
func TestTune(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.51)
	result, err := w.tune(t, tuned, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := labels(result.Trials), []string{"linux-amd64-v1/fp32", "linux-amd64-v1/int8"}; !slices.Equal(got, want) {
		t.Fatalf("trials %q, want %q", got, want)
	}
	for i, noise := range []float64{-200, -20 * math.Log10(1.5/0.01)} { // an engine without any error has the least noise there is
		trial := result.Trials[i]
		if trial.Verdict != evidence.VerdictPass || math.Abs(float64(trial.Loss)-noise) > 0.5 {
			t.Errorf("%s: verdict %s, noise %.1f dB; want a pass and %.1f dB", trial.Label(), trial.Verdict, trial.Loss, noise)
		}
		if trial.Latency == nil || trial.Latency.P50Ns <= 0 || trial.SizeBytes <= 0 {
			t.Errorf("%s: latency %v, %d bytes; want both measured", trial.Label(), trial.Latency, trial.SizeBytes)
		}
	}
	if result.Chosen != 0 || result.Goal != "accuracy" || result.Loss != tune.LossNoise || result.Model != "vision/digits" {
		t.Errorf("chose %d for %s by %s of %s, want 0 for accuracy by noise of vision/digits", result.Chosen, result.Goal, result.Loss, result.Model)
	}
	if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
		t.Errorf("heads %v, error %v after tuning; want none", heads, err)
	}
	if _, err := result.Plot(); err != nil {
		t.Errorf("plot: %v", err)
	}
}

// The choice replaces the variants of the spec, and nothing else in it.
func TestTuneWrites(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	result, err := w.tune(t, tuned, 0)
	if err != nil {
		t.Fatal(err)
	}
	result.Chosen = 1
	got, err := result.Write(w.spec(t, tuned), []byte(tuned))
	if want := strings.Replace(tuned, "variants: [fp32]", "variants: [{name: int8, quantize: {method: dynamic}}]", 1); err != nil ||
		string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	result.Chosen, result.Trials[0].Variant = 0, "gone"
	if _, err := result.Write(w.spec(t, tuned), []byte(tuned)); registry.CodeOf(err) != registry.CodeInternal {
		t.Errorf("with a choice that is no candidate: error %v, want CodeInternal", err)
	}
	result.Chosen = -1
	if _, err := result.Write(w.spec(t, tuned), []byte(tuned)); registry.CodeOf(err) != registry.CodeLimit {
		t.Errorf("without a choice: error %v, want CodeLimit", err)
	}
	if _, err := (tune.Result{}).Plot(); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a plot of nothing: error %v, want CodeInvalid", err)
	}
}

// A candidate that does not keep its limits is a trial with reasons and is not chosen. One that cannot be made
// is left out with the reason. Neither stops the others.
func TestTuneOfCandidatesThatFail(t *testing.T) {
	t.Parallel()
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		w := setup(t, -1.5)
		result, err := w.tune(t, strings.Replace(tuned, "max: accuracy", "min: size", 1), 0)
		if err != nil || len(result.Trials) != 2 {
			t.Fatalf("trials %v, error %v; want 2", labels(result.Trials), err)
		}
		worse := result.Trials[1]
		if worse.Verdict != evidence.VerdictFail || len(worse.Reasons) == 0 || !strings.Contains(worse.Reasons[0], "the signal to noise ratio in dB is -") {
			t.Errorf("int8: %s for %q, want a failure by its noise", worse.Verdict, worse.Reasons)
		}
		if result.Chosen != 0 {
			t.Errorf("chose %d, want 0: the other breaks its limits", result.Chosen)
		}
	})
	t.Run("quantizer", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		w.quantize = func(toolchain.Job) (quantized, error) {
			return quantized{}, registry.Errorf(registry.CodeInvalid, "nothing to quantize")
		}
		result, err := w.tune(t, tuned, 0)
		if err != nil || len(result.Trials) != 1 || len(result.Skipped) != 1 {
			t.Fatalf("trials %v, skipped %v, error %v; want one of each", labels(result.Trials), result.Skipped, err)
		}
		if got := result.Skipped[0]; got.Label != "linux-amd64-v1/int8" || !strings.Contains(got.Reason, "nothing to quantize") {
			t.Errorf("skipped %+v, want int8 with what the quantizer said", got)
		}
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		w := setup(t, 1.5)
		w.run = func(job toolchain.Job, _ string) error {
			if job.Verb == toolchain.VerbCompile {
				return registry.Errorf(registry.CodeInternal, "the compiler broke")
			}
			return nil
		}
		_, err := w.tune(t, tuned, 0)
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "nothing could be tried: linux-amd64-v1/int8: ") {
			t.Errorf("error %v, want CodeInvalid that names the last candidate", err)
		}
	})
}

// Targets of other machines are left out; if that is all of them, nothing is measured.
func TestTuneOnAnotherMachine(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	result, err := w.tune(t, strings.Replace(tuned, "[linux/amd64/v1]", "[linux/arm64, linux/amd64/v1]", 1), 0)
	if err != nil || len(result.Trials) != 2 || len(result.Skipped) != 1 {
		t.Fatalf("trials %v, skipped %v, error %v; want 2 and 1", labels(result.Trials), result.Skipped, err)
	}
	if got := result.Skipped[0]; got.Label != "linux-arm64" || got.Reason != "not this machine: cpu.arch: needs arm64, has amd64" {
		t.Errorf("skipped %+v, want linux-arm64 for its processor", got)
	}
	_, err = w.tune(t, strings.Replace(tuned, "linux/amd64/v1", "linux/arm64", 1), 0)
	if registry.CodeOf(err) != registry.CodeWrongNode || !strings.Contains(err.Error(), "linux-arm64: not this machine") {
		t.Errorf("error %v, want CodeWrongNode", err)
	}
}

// A machine that cannot be described ends a tuning, whichever time it is asked.
func TestTuneOnAnUnknownMachine(t *testing.T) {
	t.Parallel()
	for name, installed := range map[string]bool{"before the plan": false, "with its runtimes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			describe := w.p.Node
			w.p.Node = func(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
				if (runtimes != nil) == installed {
					return artifact.Node{}, registry.Errorf(registry.CodeUnavailable, "no /proc")
				}
				return describe(ctx, runtimes)
			}
			if _, err := w.tune(t, tuned, 0); registry.CodeOf(err) != registry.CodeUnavailable {
				t.Errorf("error %v, want CodeUnavailable", err)
			}
		})
	}
}

// Targets whose engines are the same bytes are measured once.
func TestTuneMeasuresTheSameBytesOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	ran := 0
	w.run = func(job toolchain.Job, _ string) error {
		if job.Verb == toolchain.VerbRun && job.Run.Shares {
			ran++
		}
		return nil
	}
	result, err := w.tune(t,
		strings.NewReplacer("linux/amd64/v1", "linux/amd64/v1, linux/amd64/v2",
			"variants: [{name: int8, quantize: {method: dynamic}}]", "variants: [fp32]").Replace(tuned), 0)
	if err != nil || len(result.Trials) != 2 || ran != 1 {
		t.Fatalf("trials %v, %d runs, error %v; want 2 trials and 1 run", labels(result.Trials), ran, err)
	}
	one, other := result.Trials[0], result.Trials[1]
	if one.Verdict != other.Verdict || one.Loss != other.Loss || *one.Latency != *other.Latency {
		t.Errorf("%+v and %+v, want the same figures", one, other)
	}
}

// Candidates of one precision with other bytes are measured apart.
func TestTuneMeasuresOtherBytes(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.quantize = func(job toolchain.Job) (quantized, error) {
		if job.Options["exclude_nodes"] != nil {
			return quantized{weight: 1.51}, nil
		}
		return quantized{weight: 1.6}, nil
	}
	result, err := w.tune(t, strings.Replace(tuned, "tune: {", "tune: {exclude: [[a]], ", 1), 0)
	if err != nil || len(result.Trials) != 3 {
		t.Fatalf("trials %v, error %v; want fp32, int8 and int8 without the node a", labels(result.Trials), err)
	}
	if plain, without := result.Trials[1], result.Trials[2]; plain.Loss <= without.Loss {
		t.Errorf("%s has a noise of %.1f dB, %s of %.1f dB; want less for the second", plain.Label(), plain.Loss, without.Label(), without.Loss)
	}
}

// Half of the budget is for making and comparing. What is left is for timing: the first pass always, later ones
// while there is time.
func TestTuneWithinABudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step            time.Duration // what compiling takes of a budget of an hour
		trials, skipped int
		passes          int
	}{
		"ample":                      {time.Minute, 2, 0, 4},
		"half after the first":       {30 * time.Minute, 2, 0, 4},
		"over half after the first":  {30*time.Minute + 1, 1, 1, 4},
		"all after the first":        {time.Hour, 1, 1, 4},
		"more than all by the first": {time.Hour + 1, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			now, passes := time.Unix(0, 0), 0
			w.p.Now = func() time.Time { return now }
			w.run = func(job toolchain.Job, _ string) error {
				switch {
				case job.Verb == toolchain.VerbCompile:
					now = now.Add(c.step)
				case job.Verb == toolchain.VerbRun && job.Run.Order == toolchain.OrderInterleaved:
					passes++
				}
				return nil
			}
			result, err := w.tune(t, tuned, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Trials) != c.trials || len(result.Skipped) != c.skipped || passes != c.passes {
				t.Errorf("%d trials, %v skipped, %d passes of timing; want %d, %d, %d", len(result.Trials), result.Skipped, passes, c.trials, c.skipped, c.passes)
			}
			if c.skipped > 0 && (len(result.Skipped) == 0 || result.Skipped[0].Reason != "the budget was spent") {
				t.Errorf("skipped %v, want the budget as the reason", result.Skipped)
			}
		})
	}
}

// A tuning that is stopped returns what it has measured.
func TestTuneStopped(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	ctx, stop := context.WithCancel(t.Context())
	w.quantize = func(toolchain.Job) (quantized, error) {
		stop()
		return quantized{}, context.Canceled
	}
	result, err := tune.Tune(ctx, w.p, w.spec(t, tuned), tune.Options{})
	if !errors.Is(err, context.Canceled) || len(result.Trials) != 1 {
		t.Errorf("trials %v, error %v; want the first trial and a cancellation", labels(result.Trials), err)
	}
}
