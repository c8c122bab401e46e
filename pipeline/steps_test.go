//go:build cgo

package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
)

// Steps run beside each other, and their ends are told in the order of the plan. Each that starts also ends.
func TestStepsAreToldInOrder(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := w.built(t, digits, build.Options{})
	want := []string{
		"run the reference", "compile fp32 for linux-amd64-v1", "quantize int8 for linux-amd64-v1", "compile int8 for linux-amd64-v1",
		"load 2 engines", "store in staging", "sign",
	}
	if got := w.done(progress.Done); !slices.Equal(got, want) {
		t.Errorf("a build ended the steps %q, want %q", got, want)
	}
	started := w.done(progress.Started)
	slices.Sort(started)
	slices.Sort(want)
	if !slices.Equal(started, want) {
		t.Errorf("a build started the steps %q, want %q in any order", started, want)
	}
	w.steps = nil
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(w.done(progress.Done), func(name string) bool {
		return name == "prepare consistency checks" || name == "compare golden outputs with the reference model" || strings.HasPrefix(name, "check consistency of ")
	})
	want = []string{
		"fetch engines and cases", "run 2 engines on 3 cases", "attach reports of linux-amd64-v1/fp32", "attach reports of linux-amd64-v1/int8",
	}
	timed := func(name string) bool { return strings.HasPrefix(name, "time 2 engines and the reference, ") }
	if !slices.Equal(slices.DeleteFunc(slices.Clone(got), timed), want) || !slices.ContainsFunc(got, timed) {
		t.Errorf("a verification ended the steps %q, want %q and the timing", got, want)
	}
}

// A step that fails is told as failed. The steps beside it that were stopped for it are interrupted.
func TestStepThatFails(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.run = func(job toolchain.Job, _ string) error {
		if job.Verb == toolchain.VerbCompile {
			return registry.Errorf(registry.CodeInternal, "out of registers")
		}
		return nil
	}
	_, err := build.Build(t.Context(), w.p, w.spec(t, onlyFP32), build.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "compile fp32 for linux-amd64-v1: out of registers") {
		t.Errorf("error %v, want that of the step, with its name", err)
	}
	if failed := w.done(progress.Failed); !slices.Equal(failed, []string{"compile fp32 for linux-amd64-v1"}) {
		t.Errorf("failed steps %q, want the one that failed", failed)
	}
	if stored := w.done(progress.Done); slices.Contains(stored, "store in staging") {
		t.Errorf("steps %q ended, want nothing stored", stored)
	}
}

// A build begins if what it may take is free, to the byte: the reference model, and an engine with its image form for each way
// to make one.
func TestSpaceOfABuild(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		part float64 // of the size of the model
	}{
		"fp32":          {onlyFP32, 3},
		"fp32 and int8": {digits, 3.75},
		"two targets":   {strings.Replace(onlyFP32, "linux/amd64/v1", "linux/amd64/v1, linux/amd64/v3", 1), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			info, err := os.Stat(filepath.Join(w.dir, "model.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			need := int64(float64(info.Size()) * c.part)
			for _, free := range []int64{need - 3, need} { // each part is rounded down to whole bytes
				w.p.Space = func(context.Context) (run.Space, error) { return run.Space{Where: "/tmp", Free: free}, nil }
				_, err := build.Build(t.Context(), w.p, w.spec(t, c.text), build.Options{})
				if full := registry.HasCode(err, registry.CodeFull); full != (free < need-2) || !full && err != nil {
					t.Errorf("%d bytes free of %d: error %v, want CodeFull below what it takes and none else", free, need, err)
				}
			}
		})
	}
}

// A plan says what a build would make and changes nothing.
func TestPlanReadsOnly(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	p, err := build.Plan(t.Context(), w.p, w.spec(t, digits))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Engines) != 2 || p.Model != "vision/digits" || p.Version != "1.0.0" || len(w.opened) != 0 {
		t.Errorf("plan of %d engines of %s %s, keys %q; want 2 of vision/digits 1.0.0 and no key", len(p.Engines), p.Model, p.Version, w.opened)
	}
	if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
		t.Errorf("heads %v, error %v; want none", heads, err)
	}
	var planned plan.Plan
	w.p.Planned = func(made plan.Plan) { planned = made }
	if built := w.built(t, digits, build.Options{}); built.Plan != p.Digest || planned.Digest != p.Digest {
		t.Errorf("the build announced plan %s and made %s, want %s", planned.Digest, built.Plan, p.Digest)
	}
	w.model(t, 2.5)
	other, err := build.Plan(t.Context(), w.p, w.spec(t, digits))
	if err != nil || other.Digest == p.Digest {
		t.Errorf("another model: plan %s, error %v; want another digest than %s", other.Digest, err, p.Digest)
	}
}
