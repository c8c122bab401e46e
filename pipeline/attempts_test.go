//go:build cgo

package pipeline_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// An engine that failed once does not pass a second verification under the same conditions. Otherwise one could repeat verify
// until a flaky engine passes. Another version of the program judges it anew.
func TestRepeatingDoesNotPass(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"a consistency check": "check-1-once", "the cases": "cases-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, onlyFP32, build.Options{})
			w.run = func(job toolchain.Job, outDir string) error {
				if job.Verb == toolchain.VerbRun && job.Run.Engines[0].ID == "engine-0" {
					change(t, job, outDir, part, func(y []float32) { y[0] *= 1.5 })
				}
				return nil
			}
			if _, err := verify.Verify(t.Context(), w.p, built.Ref); !registry.HasCode(err, registry.CodeLimit) {
				t.Fatalf("error %v of an engine that is wrong once, want CodeLimit", err)
			}
			w.run = nil
			for range 2 {
				verified, err := verify.Verify(t.Context(), w.p, built.Ref)
				if !registry.HasCode(err, registry.CodeLimit) || !strings.Contains(err.Error(), "it does not compute the same each time") {
					t.Fatalf("error %v, want that it failed before", err)
				}
				report := verified.Engines[0].Parity
				if report.Verdict != evidence.VerdictUndecided || len(report.Reasons) != 1 || report.Reasons[0].Code != "contradicted" {
					t.Errorf("verdict %s, reasons %+v; want undecided", report.Verdict, report.Reasons)
				}
			}
			w.p.Tool.Version += ".1"
			if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
				t.Errorf("with another version of the program: %v", err)
			}
		})
	}
}
