//go:build cgo

package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// runsOf reports whether a job runs the second engine of a verification, and how many others with it.
func runsOf(job toolchain.Job) (others int, ok bool) {
	if job.Verb != toolchain.VerbRun {
		return 0, false
	}
	ok = slices.ContainsFunc(job.Run.Engines, func(e toolchain.RunEngine) bool { return e.ID == "engine-1" })
	return len(job.Run.Engines) - 1, ok
}

// parityReports counts the parity reports about an engine.
func (w *world) parityReports(t *testing.T, release artifact.Release, engine registry.Digest) int {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), "staging", release)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range claims {
		if c.Subject == engine && c.Statement.PredicateType == evidence.PredicateParity {
			n++
		}
	}
	return n
}

// An engine that does not run fails, or remains undecided where the machine may be the cause. Either way the
// other engine gets its report.
func TestVerifyAnEngineThatDoesNotRun(t *testing.T) {
	t.Parallel()
	crash := registry.Errorf(registry.CodeInternal, "onnxruntime was ended by signal 11")
	for name, c := range map[string]struct {
		err      error // of each run of the second engine
		together bool  // only with others in its process
		probe    error // of the runtime itself
		verdict  evidence.Verdict
		code     registry.Code // of the verification; empty: it passes
		says     string
	}{
		"crashes": {crash, false, nil, evidence.VerdictFail, registry.CodeLimit,
			"does not keep its limits:\n  the engine does not run: onnxruntime: onnxruntime was ended by signal 11"},
		"does not load":          {registry.Errorf(registry.CodeInvalid, "model engine-1: Type Error"), false, nil, evidence.VerdictFail, registry.CodeLimit, "Type Error"},
		"crashes beside another": {crash, true, nil, evidence.VerdictPass, "", ""},
		"takes too long": {registry.Errorf(registry.CodeUnavailable, "exceeded its budget of 1h"), false, nil, evidence.VerdictUndecided,
			registry.CodeUnavailable, "linux-amd64-v1/int8 could not be verified: onnxruntime: exceeded its budget of 1h"},
		"crashes where the runtime does not start": {crash, false, crash, evidence.VerdictUndecided, registry.CodeInternal, "linux-amd64-v1/int8 could not be verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, digits, build.Options{})
			w.run = func(job toolchain.Job, _ string) error {
				if job.Verb == toolchain.VerbProbe {
					return c.probe
				}
				if others, ok := runsOf(job); ok && (others > 0 || !c.together) {
					return c.err
				}
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if c.code == "" && err != nil || c.code != "" && (registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("error %v, want %q with %q", err, c.code, c.says)
			}
			if len(verified.Engines) != 2 || verified.Engines[0].Parity.Verdict != evidence.VerdictPass || verified.Engines[1].Parity.Verdict != c.verdict {
				t.Fatalf("%d engines with verdicts %s and %s, want pass and %s", len(verified.Engines),
					verified.Engines[0].Parity.Verdict, verified.Engines[1].Parity.Verdict, c.verdict)
			}
			for i, want := range []int{1, map[bool]int{true: 0, false: 1}[c.verdict == evidence.VerdictUndecided]} {
				if got := w.parityReports(t, built.Release, verified.Engines[i].Digest); got != want {
					t.Errorf("%s has %d reports, want %d", verified.Engines[i].Label, got, want)
				}
			}
			if p := verified.Engines[1].Parity; p.Rules != evidence.ReportRules || p.Attempts != 1 {
				t.Errorf("rules %d and attempt %d, want those of the limits and the first", p.Rules, p.Attempts)
			}
			if p := verified.Engines[1].Parity; c.verdict != evidence.VerdictPass && (p.Cases.Ran != 0 ||
				p.Cases.Count == 0 || len(p.Reasons) != 1 || p.Reasons[0].Code != "run_failed") {
				t.Errorf("report %+v, want one of no cases with the code run_failed", p)
			}
		})
	}
}

// An engine that cannot be timed beside others is timed alone. It fails if that does not succeed, too, unless it
// takes too long for this machine. What the others take is known all the same.
func TestTimeAnEngineThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err      error
		together bool // only with others in its process
		verdict  evidence.Verdict
	}{
		"crashes":                {registry.Errorf(registry.CodeInternal, "onnxruntime was ended by signal 9"), false, evidence.VerdictFail},
		"crashes beside another": {registry.Errorf(registry.CodeInternal, "onnxruntime was ended by signal 9"), true, evidence.VerdictPass},
		"takes too long":         {registry.Errorf(registry.CodeUnavailable, "exceeded its budget of 1h"), false, evidence.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, digits, build.Options{})
			w.run = func(job toolchain.Job, _ string) error {
				if others, ok := runsOf(job); ok && job.Run.Rounds > 1 && (others > 0 || !c.together) {
					return c.err
				}
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if (err != nil) != (c.verdict == evidence.VerdictFail) || err != nil && registry.CodeOf(err) != registry.CodeLimit {
				t.Fatalf("error %v, want the verdict %s", err, c.verdict)
			}
			first, second := verified.Engines[0], verified.Engines[1]
			if first.Parity.Verdict != evidence.VerdictPass || second.Parity.Verdict != c.verdict {
				t.Errorf("verdicts %s and %s, want pass and %s", first.Parity.Verdict, second.Parity.Verdict, c.verdict)
			}
			if first.Performance.Samples == 0 || (second.Performance.Samples == 0) == c.together || !first.Performance.Apart {
				t.Errorf("%d and %d samples, apart %v; want some of the first, apart",
					first.Performance.Samples, second.Performance.Samples, first.Performance.Apart)
			}
			warned := slices.ContainsFunc(w.warnings, func(text string) bool {
				return strings.Contains(text, "linux-amd64-v1/int8 was not timed: onnxruntime: "+c.err.Error())
			})
			if warned == c.together {
				t.Errorf("warnings %q, want one about int8: %v", w.warnings, !c.together)
			}
		})
	}
}
