//go:build cgo

package pipeline_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// promoted brings version 1.0.0 of a spec to prod, from a model that multiplies by 1.5.
func (w *world) promoted(t *testing.T, text string) {
	t.Helper()
	first := w.built(t, text, build.Options{})
	if _, err := verify.Verify(t.Context(), w.p, first.Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: "vision/digits"}); err != nil {
		t.Fatal(err)
	}
}

// worse is version 1.1.0: a model that multiplies by 1.9, where the labels say 1.5, with a limit
// on how much worse than prod's engine it may be.
func (w *world) worse(t *testing.T, from, limits string) verify.Result {
	t.Helper()
	w.model(t, 1.9)
	second := w.built(t, strings.Replace(from, "1.0.0", "1.1.0", 1)+"limits: "+limits+"\n", build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, second.Ref)
	if !registry.HasCode(err, registry.CodeLimit) {
		t.Fatalf("error %v, want that a limit is not kept", err)
	}
	return verified
}

const (
	labelled = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: {path: cases/, labels: price}
variants: [VARIANT]
targets: [TARGET]
`
	noWorse = "{accuracy: {metric: mae, regression: {max: 10%}}, latency: {regression: {max: 1000000%}}}"
)

func labelledSpec(variant, target string) string {
	return strings.NewReplacer("VARIANT", variant, "TARGET", target).Replace(labelled)
}

// called is a driver under another name.
type called struct {
	toolchain.Driver
	name string
}

func (d called) Identity(ctx context.Context) (toolchain.Identity, error) {
	found, err := d.Driver.Identity(ctx)
	found.Name = d.name
	return found, err
}

// A limit on how much worse than the destination's engine one may be holds for a variant that the
// destination has under another name too: it is compared with what this machine gets there now.
func TestRegressionUnderANewName(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.priced(t)
	w.promoted(t, labelledSpec("fp32", "linux/amd64/v1"))
	w.quantize = func(toolchain.Job) (quantized, error) { return quantized{weight: 1.9}, nil }
	e := w.worse(t, labelledSpec("{name: small, quantize: {method: dynamic}}", "linux/amd64/v1"), noWorse).Engines[0]
	if e.Parity.Verdict != evidence.VerdictFail || e.Parity.Reasons[0].Code != validators.ReasonAccuracy {
		t.Errorf("%s: %s %v, want a failure for its accuracy", e.Label, e.Parity.Verdict, e.Parity.Reasons)
	}
	if r := e.Performance.Ratio; r == nil || r.Environment != "prod" {
		t.Errorf("ratio %+v, want the latency beside that of prod's engine", r)
	}
}

// Where the destination's engine cannot run here, such a limit is not decided, which is no pass.
func TestRegressionNotComparable(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"under its name":   "{name: cpu, os: linux, cpu: {arch: amd64}}",
		"under a new name": "linux/amd64/v1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			open, gone := w.p.Toolchain, false
			w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
				if gone && name == "openvino" {
					return run.Toolchain{}, registry.Errorf(registry.CodeNotFound, "toolchain openvino is not installed")
				}
				found, err := open(ctx, name)
				found.Profile.Name, found.Engines = name, called{found.Engines, name}
				return found, err
			}
			w.promoted(t, labelledSpec("fp32", "{name: cpu, os: linux, cpu: {arch: amd64}, toolchain: openvino}"))
			gone = true
			e := w.worse(t, labelledSpec("fp32", target), noWorse).Engines[0]
			for kind, got := range map[string]struct {
				verdict evidence.Verdict
				reasons []evidence.Reason
			}{"parity": {e.Parity.Verdict, e.Parity.Reasons}, "performance": {e.Performance.Verdict, e.Performance.Reasons}} {
				if got.verdict != evidence.VerdictUndecided || len(got.reasons) != 1 || got.reasons[0].Code != validators.ReasonNotRun ||
					!strings.Contains(got.reasons[0].Message, "cpu/fp32 of prod cannot be compared with here: ") ||
					!strings.Contains(got.reasons[0].Message, "openvino is not installed") {
					t.Errorf("%s: %s %v, want undecided because prod's engine cannot run here", kind, got.verdict, got.reasons)
				}
			}
		})
	}
}

// Where the destination's engine fails on the cases of the release, how much worse the new one is remains undecided.
func TestRegressionWhereTheCurrentEngineFails(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(outDir string) error{
		"it does not run": func(string) error { return registry.Errorf(registry.CodeInternal, "ended by signal 11") },
		"it has other outputs": func(outDir string) error {
			other, err := tensor.New(make([]float32, 80), 40, 2)
			if err != nil {
				return err
			}
			writeTensors(t, filepath.Join(outDir, "outputs", "current-0", "cases-00000.safetensors"), map[string]tensor.Tensor{"y": other})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			w.promoted(t, labelledSpec("fp32", "linux/amd64/v1"))
			w.run = func(job toolchain.Job, outDir string) error {
				if job.Verb == toolchain.VerbRun && job.Run.Rounds == 0 && slices.ContainsFunc(job.Run.Engines, func(e toolchain.RunEngine) bool { return e.ID == "current-0" }) {
					return fails(outDir)
				}
				return nil
			}
			e := w.worse(t, labelledSpec("fp32", "linux/amd64/v1"), noWorse).Engines[0]
			if e.Parity.Verdict != evidence.VerdictUndecided || len(e.Parity.Reasons) == 0 || e.Parity.Reasons[0].Code != validators.ReasonNotRun {
				t.Errorf("parity %s %v, want undecided because prod's engine cannot be compared with", e.Parity.Verdict, e.Parity.Reasons)
			}
		})
	}
}

// A release that was compared with what the destination had before is verified again before it replaces
// what the destination has now.
func TestHeadMovedAfterVerify(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.priced(t)
	text := labelledSpec("fp32", "linux/amd64/v1")
	w.promoted(t, text)
	var second, third build.Result
	for version, built := range map[string]*build.Result{"1.1.0": &second, "1.2.0": &third} {
		w.model(t, map[string]float64{"1.1.0": 1.501, "1.2.0": 1.502}[version])
		*built = w.built(t, strings.Replace(text, "1.0.0", version, 1)+"limits: "+noWorse+"\n", build.Options{})
		if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
			t.Fatal(err)
		}
	}
	promote := func(of build.Result) error {
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: "vision/digits", Ref: of.Release.Tag()})
		return err
	}
	if err := promote(second); err != nil {
		t.Fatal(err)
	}
	want := "prod has release " + string(second.Release.Digest) + " now: run mlpromote verify again"
	if err := promote(third); !registry.HasCode(err, registry.CodePolicy) || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want a refusal with %q", err, want)
	}
	if _, err := verify.Verify(t.Context(), w.p, third.Ref); err != nil {
		t.Fatal(err)
	}
	if err := promote(third); err != nil {
		t.Errorf("after verify: %v", err)
	}
	w.p.Destination = "staging"
	if _, err := verify.Verify(t.Context(), w.p, third.Ref); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), `want one of ["prod"]`) {
		t.Errorf("compared with staging: error %v, want that it takes no releases from staging", err)
	}
	w.p.Destination = "" // prod, which nothing takes releases from
	there := third.Ref
	there.Environment = "prod"
	if _, err := verify.Verify(t.Context(), w.p, there); err != nil {
		t.Errorf("verify in the last environment: %v", err)
	}
	w.p.Destination = "staging"
	if _, err := verify.Verify(t.Context(), w.p, there); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "want one of []") {
		t.Errorf("prod compared with staging: error %v, want that nothing takes releases from prod", err)
	}
}
