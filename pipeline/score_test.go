//go:build cgo

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
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
			_, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{})
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

// Verification scores the golden outputs once and each engine's outputs, and the limit is on the difference. A metric that
// cannot be computed decides nothing, so the engine does not pass.
func TestVerifyScoresByTheProgram(t *testing.T) {
	t.Parallel()
	reference, engines := slices.Repeat([]float64{1, 0.5}, 20), slices.Repeat([]float64{0.5}, 40)
	for name, c := range map[string]struct {
		engine  []float64
		err     error // of the program, on outputs of engines
		none    bool  // this machine cannot run programs
		verdict evidence.Verdict
		says    string
	}{
		"as good":             {reference, nil, false, evidence.VerdictPass, ""},
		"worse":               {engines, nil, false, evidence.VerdictFail, "program"},
		"a score that is NaN": {slices.Repeat([]float64{math.NaN()}, 40), nil, false, evidence.VerdictUndecided, "NaN"},
		"it fails":            {nil, registry.Errorf(registry.CodeInvalid, "division by zero"), false, evidence.VerdictUndecided, "division by zero"},
		"it cannot be run":    {nil, nil, true, evidence.VerdictUndecided, "cannot be run here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			write(t, w, "score.py", []byte("pass"))
			w.p.Score = func(context.Context, toolchain.ScoreJob) ([]float64, error) { return reference, nil }
			built := w.built(t, pricedSpec("{metric: program, program: score.py, drop: {max: 10%}}"), build.Options{})
			var jobs []toolchain.ScoreJob
			w.p.Score = func(_ context.Context, j toolchain.ScoreJob) ([]float64, error) {
				jobs = append(jobs, j)
				if len(jobs) == 1 {
					return reference, nil
				}
				return c.engine, c.err
			}
			if c.none {
				w.p.Score = nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if err != nil && registry.CodeOf(err) != registry.CodeLimit || len(verified.Engines) != 2 {
				t.Fatalf("%d engines, error %v; want a verdict of both", len(verified.Engines), err)
			}
			for _, e := range verified.Engines {
				if got := e.Parity; got.Verdict != c.verdict || c.says != "" && !strings.Contains(fmt.Sprint(got.Reasons), c.says) {
					t.Errorf("%s: %s for %v, want %s that says %q", e.Label, got.Verdict, got.Reasons, c.verdict, c.says)
				}
			}
			if c.none {
				return
			}
			folders := make(map[string]bool)
			for _, j := range jobs {
				if j.Count != 40 || len(j.Cases) != 1 || len(j.Outputs) != 1 || j.Cases[0].Name != j.Outputs[0].Name {
					t.Errorf("job %+v, want the 40 cases and outputs of the same name", j)
				}
				folders[filepath.Dir(j.Outputs[0].Path)] = true
			}
			if len(jobs) != 3 || len(folders) != 3 {
				t.Errorf("%d jobs on %d folders, want one each for the golden outputs and two engines", len(jobs), len(folders))
			}
		})
	}
}

// A build that is interrupted while it tries the program says so, and not that the spec is wrong.
func TestBuildInterruptedInTheProgram(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.priced(t)
	write(t, w, "score.py", []byte("pass"))
	ctx, cancel := context.WithCancel(t.Context())
	w.p.Score = func(ctx context.Context, _ toolchain.ScoreJob) ([]float64, error) {
		cancel()
		return nil, ctx.Err()
	}
	s := w.spec(t, pricedSpec("{metric: program, program: score.py, drop: {max: 10%}}"))
	if _, err := build.Build(ctx, w.p, s, build.Options{}); !errors.Is(err, context.Canceled) || registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("error %v with the code %s, want that the build was interrupted", err, registry.CodeOf(err))
	}
}

// The program of a metric is the one that the limits name by its digest: without it, or with another, nothing is verified.
func TestVerifyRefusesAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string // of the program in the release; empty: as it was
		without bool
		want    string // part of the error; empty: none
	}{
		"as it was": {"", false, ""},
		"another":   {"fail", false, "which the limits name"},
		"none":      {"", true, "have no program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.priced(t)
			write(t, w, "score.py", []byte("pass"))
			scores := slices.Repeat([]float64{1, 0.5}, 20)
			w.p.Score = func(context.Context, toolchain.ScoreJob) ([]float64, error) { return scores, nil }
			store := tampering{PartStore: w.p.Parts, roles: make(map[registry.Digest]artifact.PartKind), part: func(p *storage.Part) {
				if p.Role == artifact.PartProgram && c.text != "" {
					p.Files = []storage.PartFile{fileOf("score.py", c.text)}
				}
			}}
			store.sources = func(parts []storage.PartRef) []storage.PartRef {
				return slices.DeleteFunc(slices.Clone(parts), func(ref storage.PartRef) bool { return c.without && store.roles[ref.Digest] == artifact.PartProgram })
			}
			w.p.Parts = store
			built := w.built(t, pricedSpec("{metric: program, program: score.py, drop: {max: 10%}}"), build.Options{})
			_, err := verify.Verify(t.Context(), w.p, built.Ref)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one of trust with %q", err, c.want)
			}
		})
	}
}
