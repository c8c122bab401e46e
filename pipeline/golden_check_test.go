//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// forged is a world whose release has golden outputs of y = 1.25 * x for a reference model of y = 1.5 * x, as a builder could
// store whose key somebody has. The int8 engine is the other model.
func forged(t *testing.T) (*world, build.Result) {
	t.Helper()
	w := setup(t, 1.25)
	w.storeGolden(t, 1.25)
	return w, w.built(t, digits, build.Options{})
}

// storeGolden has builds store golden outputs of y = weight * x.
func (w *world) storeGolden(t *testing.T, weight float32) {
	t.Helper()
	given, golden := filepath.Join(t.TempDir(), "cases"), filepath.Join(t.TempDir(), "golden")
	writeCases(t, given, []float32{1, -2, 3})
	if _, err := scale(given, golden, weight); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	w.p.Parts = tampering{PartStore: w.p.Parts, roles: make(map[registry.Digest]artifact.PartKind), part: func(p *storage.Part) {
		if p.Role == artifact.PartGolden {
			p.Files = []storage.PartFile{fileOf(p.Files[0].Path, string(data))}
		}
	}}
}

func goldenCheck(e verify.VerifiedEngine) evidence.Check {
	check, _ := e.Parity.Checks.Of(evidence.TrialGolden)
	return check
}

// onGolden reports whether a job runs the reference model to check golden outputs.
func onGolden(job toolchain.Job) bool {
	return job.Verb == toolchain.VerbRun && job.Run.Engines[0].ID == "reference" &&
		slices.ContainsFunc(job.Inputs, func(in toolchain.Input) bool { return strings.HasPrefix(in.Name, "case-") })
}

// An engine of another model does not pass because the golden outputs are of that model, too: the verifier runs the reference
// model itself.
func TestVerifyComparesGoldenOutputs(t *testing.T) {
	t.Parallel()
	w, built := forged(t)
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), "of 3 cases the reference model computes something else than the golden outputs in 3: output y of case 0: at") {
		t.Fatalf("error %v, want CodeLimit about the golden outputs", err)
	}
	engine := verified.Engines[1]
	if got := goldenCheck(engine); engine.Parity.Verdict != evidence.VerdictFail || got.Verdict != evidence.VerdictFail || got.Cases != 3 || got.Affected != 3 || got.Value != 0.75 {
		t.Errorf("verdict %s, check %+v; want both to fail, for all cases", engine.Parity.Verdict, got)
	}
	if engine.Parity.Outputs["y"].MaxAbs != 0 || len(engine.Parity.Reasons) != 1 || engine.Parity.Reasons[0].Code != "golden_outputs" {
		t.Errorf("largest error %v, reasons %+v; want an engine that equals the golden outputs, and one reason", engine.Parity.Outputs["y"].MaxAbs, engine.Parity.Reasons)
	}
}

// Where the reference model takes longer than was foreseen, fewer cases are compared: at least eight.
func TestVerifyComparesFewerGoldenOutputs(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.manyCases(t)
	built := w.built(t, onlyFP32, build.Options{})
	var sizes []int
	var hung time.Duration
	w.p.Now = func() time.Time { return time.Now().Add(hung) }
	w.run = func(job toolchain.Job, _ string) error {
		if !onGolden(job) {
			return nil
		}
		n := len(slices.DeleteFunc(slices.Clone(job.Inputs), func(in toolchain.Input) bool { return in.Role != toolchain.RoleCases }))
		if sizes = append(sizes, n); n > 8 {
			hung += job.Budget.Time
			return registry.Errorf(registry.CodeUnavailable, "onnxruntime ran longer than %s and was stopped", job.Budget.Time)
		}
		return nil
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil || !slices.Equal(sizes, []int{40, 8}) {
		t.Fatalf("ran %v cases, error %v; want 40 and 8", sizes, err)
	}
	if got := goldenCheck(verified.Engines[0]); got.Verdict != evidence.VerdictPass || got.Cases != 8 {
		t.Errorf("check %+v, want a pass by eight cases", got)
	}
}

// Where the reference model cannot be run, nothing passes; an interruption ends the verification.
func TestVerifyCannotCompareGoldenOutputs(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := w.built(t, onlyFP32, build.Options{})
	w.run = func(job toolchain.Job, _ string) error {
		if onGolden(job) {
			return registry.Errorf(registry.CodeUnavailable, "no memory is left")
		}
		return nil
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), "the golden outputs were not compared with the reference model: the reference model was not run: ") {
		t.Fatalf("error %v, want CodeLimit that says that nothing was compared", err)
	}
	if got := goldenCheck(verified.Engines[0]); got.Verdict != evidence.VerdictUndecided || verified.Engines[0].Parity.Verdict != evidence.VerdictUndecided {
		t.Errorf("verdict %s, check %+v; want both undecided", verified.Engines[0].Parity.Verdict, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.run = func(job toolchain.Job, _ string) error {
		if onGolden(job) {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if _, err := verify.Verify(ctx, w.p, built.Ref); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
	w.run = func(job toolchain.Job, outDir string) error {
		if onGolden(job) {
			return os.RemoveAll(filepath.Join(outDir, "outputs"))
		}
		return nil
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); !registry.HasCode(err, registry.CodeInternal) || !strings.Contains(err.Error(), "the reference model left no outputs of case 0") {
		t.Errorf("without outputs: error %v", err)
	}
}

// An engine may differ from what the reference model computes here by no more than its limits, although golden outputs may by more: within
// that a builder could hide another model. It is judged by what the reference model computes of drawn cases, too.
func TestVerifyJudgesByTheReferenceModel(t *testing.T) {
	t.Parallel()
	const off = 1.0004 // golden outputs may be off by a thousandth of the range, and fp32 engines by a ten thousandth of the spread
	w := setup(t, 1.5)
	w.storeGolden(t, 1.5*off)
	built := w.built(t, onlyFP32, build.Options{})
	w.run = func(job toolchain.Job, outDir string) error {
		if job.Verb == toolchain.VerbRun {
			change(t, job, outDir, ".safetensors", func(y []float32) {
				for i := range y {
					y[i] *= off
				}
			})
		}
		return nil
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if want := "against what the reference model computes here, for 3 cases that were drawn: output y: the signal to noise ratio in dB is 67.5"; !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want CodeLimit with %q", err, want)
	}
	report := verified.Engines[0].Parity
	if got := goldenCheck(verified.Engines[0]); got.Verdict != evidence.VerdictFail || report.Outputs["y"].SpreadSNRdB < 80 {
		t.Errorf("check %+v, %v dB against the golden outputs; want a failure of the check alone", got, report.Outputs["y"].SpreadSNRdB)
	}
}
