//go:build cgo

package pipeline_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
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
			_, err := w.p.Build(t.Context(), w.spec(t, digits), pipeline.BuildOptions{})
			if err == nil || !strings.Contains(err.Error(), c.says) || !slices.ContainsFunc(registry.Hints(err), func(hint string) bool { return strings.Contains(hint, "1 engine could be made, and nothing is stored") }) {
				t.Fatalf("error %v with hints %q, want %q and that 1 engine could be made", err, registry.Hints(err), c.says)
			}
			if heads, err := w.Heads(t.Context(), "staging", ""); err != nil || len(heads) != 0 {
				t.Fatalf("heads %v, error %v; want none", heads, err)
			}
			built, err := w.p.Build(t.Context(), w.spec(t, digits), pipeline.BuildOptions{KeepGoing: true})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %q", err, c.says)
			}
			if len(built.Release.Engines) != 1 || len(built.Failed) != 1 || built.Failed[0].Label != c.label || built.Failed[0].Reason == "" {
				t.Fatalf("%d engines, failed %+v; want 1 and %s", len(built.Release.Engines), built.Failed, c.label)
			}
			broken = false
			whole, err := w.p.Build(t.Context(), w.spec(t, digits), pipeline.BuildOptions{})
			if err != nil || whole.Unchanged || len(whole.Release.Engines) != 2 || whole.Failed != nil {
				t.Errorf("%d engines, unchanged %v, failed %v, error %v; want a new release of 2", len(whole.Release.Engines), whole.Unchanged, whole.Failed, err)
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
	return weightOf(model) == -1.5
}
