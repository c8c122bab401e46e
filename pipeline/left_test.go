//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// An engine that fails does not keep the others from being made. Whether the release is made without it is asked
// for; the next build of the same spec tries again.
func TestBuildKeepsGoing(t *testing.T) {
	t.Parallel()
	crash := registry.Errorf(registry.CodeInternal, "signal: segmentation fault")
	for name, c := range map[string]struct {
		fails    func(toolchain.Job) bool // of the runtime's driver
		quantize bool                     // the quantizer fails
		label    string                   // of the engine that fails
		says     string
	}{
		"an engine that does not load": {fails: func(job toolchain.Job) bool { return loads(job) && job.Run.Engines[0].ID == "loaded-0" },
			label: "linux-amd64-v1/fp32", says: "load linux-amd64-v1/fp32: onnxruntime: signal: segmentation fault"},
		"an engine that cannot be compiled": {fails: func(job toolchain.Job) bool {
			return job.Verb == toolchain.VerbCompile && len(job.Inputs) > 0 && !quantizedInput(t, job)
		},
			label: "linux-amd64-v1/fp32", says: "compile fp32 for linux-amd64-v1: signal: segmentation fault"},
		"a variant that cannot be quantized": {quantize: true,
			label: "linux-amd64-v1/int8", says: "quantize int8 for linux-amd64-v1: signal: segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, -1.5)
			broken := true
			w.run = func(job toolchain.Job, _ string) error {
				if broken && c.fails != nil && c.fails(job) {
					return crash
				}
				return nil
			}
			quantize := w.quantize
			w.quantize = func(job toolchain.Job) (quantized, error) {
				if broken && c.quantize {
					return quantized{}, crash
				}
				return quantize(job)
			}
			_, err := build.Build(t.Context(), w.p, w.spec(t, digits), build.Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) || !slices.ContainsFunc(registry.Hints(err),
				func(hint string) bool { return strings.Contains(hint, "1 engine could be made, and nothing is stored") }) {
				t.Fatalf("error %v with hints %q, want %q and that 1 engine could be made", err, registry.Hints(err), c.says)
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
				t.Fatalf("heads %v, error %v; want none", heads, err)
			}
			built, err := build.Build(t.Context(), w.p, w.spec(t, digits), build.Options{KeepGoing: true})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %q", err, c.says)
			}
			if len(built.Release.Engines) != 1 || len(built.Failed) != 1 || built.Failed[0].Label != c.label || built.Failed[0].Reason == "" {
				t.Fatalf("%d engines, failed %+v; want 1 and %s", len(built.Release.Engines), built.Failed, c.label)
			}
			if left := w.leftOut(t, built.Release); len(left) != 1 || left[0] != (evidence.LeftOut{Label: c.label, Code: registry.CodeInternal}) {
				t.Errorf("the release says that it was made without %v, want %s", left, c.label)
			}
			broken = false
			whole, err := build.Build(t.Context(), w.p, w.spec(t, digits), build.Options{})
			if err != nil || whole.Unchanged || len(whole.Release.Engines) != 2 || whole.Failed != nil {
				t.Errorf("%d engines, unchanged %v, failed %v, error %v; want a new release of 2", len(whole.Release.Engines), whole.Unchanged, whole.Failed, err)
			}
			if left := w.leftOut(t, whole.Release); len(left) > 0 {
				t.Errorf("the whole release says that it was made without %v", left)
			}
		})
	}
}

// quantizedInput reports whether a job is about what the quantizer left.
func quantizedInput(t *testing.T, job toolchain.Job) bool {
	t.Helper()
	model, err := os.ReadFile(job.Inputs[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	weight, err := weightOf(model)
	return err == nil && weight == -1.5
}

// twoToolchains has an engine of ONNX Runtime and one of another toolchain.
const twoToolchains = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32]
targets: [linux/amd64/v1, {name: other, os: linux, cpu: {arch: amd64, level: v1}, toolchain: litert}]
`

// renamed is a driver under another name.
type renamed struct {
	toolchain.Driver
	name string
}

func (r renamed) Identity(ctx context.Context) (toolchain.Identity, error) {
	identity, err := r.Driver.Identity(ctx)
	identity.Name = r.name
	return identity, err
}

// leftOut is what the evidence of a release says that it was made without.
func (w *world) leftOut(t *testing.T, r artifact.Release) []evidence.LeftOut {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	return evidence.LeftOutOf(r, claims)
}

// A toolchain that cannot be had keeps the engines of others neither from being made nor from being verified, and
// the release says what it lacks.
func TestBuildWithoutAToolchain(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	open := w.p.Toolchain
	lacking := registry.Lastingf(registry.CodeUnavailable, "litert needs libGL.so.1")
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		if name == "litert" && lacking != nil {
			return run.Toolchain{}, lacking
		}
		tools, err := open(ctx, name)
		tools.Profile.Name, tools.Engines = name, renamed{tools.Engines, name}
		return tools, err
	}
	_, err := build.Build(t.Context(), w.p, w.spec(t, twoToolchains), build.Options{})
	hints := strings.Join(registry.Hints(err), "\n")
	if !registry.HasCode(err, registry.CodeUnavailable) ||
		!strings.Contains(hints, "1 engine can be made without: to make the release of those, build with --keep-going") || len(w.steps) > 0 {
		t.Fatalf("error %v with the hints %q after the steps %v, want that litert is lacking, before any step", err, hints, w.steps)
	}
	want := []evidence.LeftOut{{Label: "other/fp32", Code: registry.CodeUnavailable}}
	for _, unchanged := range []bool{false, true} {
		built, err := build.Build(t.Context(), w.p, w.spec(t, twoToolchains), build.Options{KeepGoing: true})
		if !errors.Is(err, lacking) || built.Unchanged != unchanged || len(built.Release.Engines) != 1 ||
			len(built.Failed) != 1 || built.Failed[0].Reason != "litert needs libGL.so.1" {
			t.Fatalf("%d engines, unchanged %t, failed %+v, error %v; want 1, unchanged %t, and litert's failure",
				len(built.Release.Engines), built.Unchanged, built.Failed, err, unchanged)
		}
		if got := w.leftOut(t, built.Release); !slices.Equal(got, want) {
			t.Errorf("the release says that it was made without %+v, want %+v", got, want)
		}
	}
	lacking = nil
	whole := w.built(t, twoToolchains, build.Options{})
	if got := w.leftOut(t, whole.Release); len(whole.Release.Engines) != 2 || len(got) > 0 {
		t.Errorf("%d engines, and without %v; want 2, and nothing left out", len(whole.Release.Engines), got)
	}
	lacking = registry.Errorf(registry.CodeInternal, "litert broke")
	verified, err := verify.Verify(t.Context(), w.p, whole.Ref)
	if err != nil || len(verified.Engines) != 1 || len(verified.Skipped) != 1 || verified.Skipped[0].Reason != "litert broke" {
		t.Errorf("verified %d engines, skipped %v, error %v; want 1, and the other skipped because litert broke",
			len(verified.Engines), verified.Skipped, err)
	}
}

// If no engine can be made, there is no release to keep going with.
func TestBuildWithoutAnyToolchain(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		if name == "litert" {
			return run.Toolchain{}, registry.Errorf(registry.CodeNotFound, "no toolchain litert")
		}
		return open(ctx, name)
	}
	text := strings.Replace(twoToolchains, "linux/amd64/v1, ", "", 1)
	if _, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{KeepGoing: true}); !registry.HasCode(err, registry.CodeNotFound) ||
		len(registry.Hints(err)) > 0 {
		t.Errorf("error %v with the hints %q, want the toolchain's and no hint", err, registry.Hints(err))
	}
}

// A mistake in the limits is said although a toolchain is missing here.
func TestMissingToolchainHidesNoMistake(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		if name == "openvino" {
			return run.Toolchain{}, registry.Errorf(registry.CodeUnavailable, "no program vendorc on PATH")
		}
		return open(ctx, name)
	}
	text := strings.Replace(onlyFP32, "[linux/amd64/v1]", "[{name: x, cpu: {arch: amd64}, toolchain: openvino}]", 1)
	for name, c := range map[string]struct {
		limits string
		code   registry.Code
		says   string
	}{
		"good limits": {"", registry.CodeUnavailable, "no program vendorc"},
		"bad limits":  {"limits: {preset: mlperf-99}\n", registry.CodeInvalid, "limits.accuracy asks for labels"},
	} {
		_, err := build.Plan(t.Context(), w.p, w.spec(t, text+c.limits))
		if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %s that says %q", name, err, c.code, c.says)
		}
	}
}
