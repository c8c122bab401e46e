//go:build cgo

package pipeline_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// The program of a metric is tried on the golden outputs before anything is signed. Where it cannot be run here, the build warns.
func TestBuildTriesTheProgramOfTheMetric(t *testing.T) {
	t.Parallel()
	const untried = "the program of the metric was not tried"
	for name, c := range map[string]struct {
		scores []float64
		err    error
		code   registry.Code // of the build; empty: it ends well
		says   string        // in its error or its warnings
	}{
		"it works":              {slices.Repeat([]float64{1, 0.5}, 20), nil, "", ""},
		"it fails":              {nil, registry.Errorf(registry.CodeInvalid, "division by zero"), registry.CodeInvalid, "limits.accuracy.program: division by zero"},
		"a score that is NaN":   {slices.Repeat([]float64{1, math.NaN()}, 20), nil, registry.CodeInvalid, "limits.accuracy.program: "},
		"it cannot be run here": {nil, registry.Errorf(registry.CodeUnavailable, "no Python"), "", untried},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			if err := os.WriteFile(filepath.Join(w.dir, "score.py"), []byte("pass"), 0o600); err != nil {
				t.Fatal(err)
			}
			var job toolchain.ScoreJob
			w.p.Score = func(_ context.Context, j toolchain.ScoreJob) ([]float64, error) {
				job = j
				return c.scores, c.err
			}
			text := pricedSpec("{metric: program, program: score.py, drop: {max: 10%}}")
			_, err := w.p.Build(t.Context(), w.spec(t, text), pipeline.BuildOptions{})
			if c.code == "" && err != nil || c.code != "" && (!registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("error %v, want %q that says %q", err, c.code, c.says)
			}
			if said := strings.Join(w.warnings, "\n"); strings.Contains(said, untried) != (c.says == untried) {
				t.Errorf("warnings %q, want that it was not tried: %t", said, c.says == untried)
			}
			if job.Count != 40 || len(job.Cases) != 1 || len(job.Outputs) != 1 || !strings.HasSuffix(job.Program.Name, "score.py") {
				t.Errorf("job %+v, want the program, the 40 cases and the golden outputs", job)
			}
		})
	}
}
