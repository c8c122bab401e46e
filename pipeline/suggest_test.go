//go:build cgo

package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/tune"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
)

// Limits are suggested from other cases, kept by the engines on the verdict's, and refused from the
// verdict's own.
func TestSuggestLimits(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.501)
	more := filepath.Join(w.dir, "more")
	if err := os.Mkdir(more, 0o700); err != nil {
		t.Fatal(err)
	}
	writeCases(t, filepath.Join(more, "a.safetensors"), []float32{4, 1, 5})
	if _, err := tune.SuggestLimits(t.Context(), w.p, w.spec(t, digits), "more"); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), "case 1 is also a case of the verdict") || !strings.Contains(err.Error(), "that holds for 1 of 3 cases") {
		t.Fatalf("error %v, want CodeInvalid about case 1", err)
	}
	writeCases(t, filepath.Join(more, "a.safetensors"), []float32{4, -4, 5, 0.5})
	got, err := tune.SuggestLimits(t.Context(), w.p, w.spec(t, digits), "more")
	if err != nil {
		t.Fatal(err)
	}
	y := got.Precisions["int8"]["y"]
	if got.Cases != 4 || got.Verdict != 3 || got.Reports != 2 || y.MaxError == nil || !(y.MaxError.Max > 0 && y.MaxError.Max < 2.5) || got.Drop != nil {
		t.Fatalf("suggested %+v, int8 %+v", got, y)
	}
	built := w.built(t, digits+got.YAML(), build.Options{})
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Errorf("the engines do not keep what was suggested: %v in %s", err, got.YAML())
	}
}
