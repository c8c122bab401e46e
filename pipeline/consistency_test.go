//go:build cgo

package pipeline_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// checksConsistency reports whether a job is a run of consistency checks.
func checksConsistency(job toolchain.Job) bool {
	return slices.ContainsFunc(job.Inputs, func(in toolchain.Input) bool { return strings.HasPrefix(in.Name, "check-") })
}

// openSpec is onlyFP32 for a model with open dimensions.
const openSpec = onlyFP32 + "shapes: {batch: [1, 1, 8], width: [1, 1, 4]}\n"

// open describes a value of shape [batch, width].
func open(name string) []byte {
	shape := sub(sub(nil, 1, str(nil, 2, "batch")), 1, str(nil, 2, "width"))
	return sub(str(nil, 1, name), 2, sub(nil, 1, sub(num(nil, 1, 1), 2, shape)))
}

// opened gives a world a model with open dimensions, and builds it.
func opened(t *testing.T, w *world) build.Result {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), scalingOf(1.5, 1, "open", open), 0o600); err != nil {
		t.Fatal(err)
	}
	return w.built(t, openSpec, build.Options{})
}

// change changes the outputs of the engine in a file of consistency checks whose name has the part.
func change(t *testing.T, job toolchain.Job, outDir, part string, how func(y []float32)) {
	t.Helper()
	for _, in := range job.Inputs {
		if job.Verb != toolchain.VerbRun || !strings.Contains(in.Name, part) {
			continue
		}
		for _, e := range job.Run.Engines {
			if strings.HasPrefix(e.ID, "engine-0") {
				changeFile(t, filepath.Join(outDir, "outputs", e.ID, in.Name), how)
			}
		}
	}
}

func changeFile(t *testing.T, path string, how func(y []float32)) {
	t.Helper()
	read, err := tensorfile.ReadFile(path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := tensor.Values[float32](read["y"])
	if err != nil {
		t.Fatal(err)
	}
	how(y)
	if read["y"], err = tensor.New(y, read["y"].Shape...); err != nil {
		t.Fatal(err)
	}
	writeTensors(t, path, read)
}

// An engine that fails a consistency check fails the verification, and its report says why. One that passes has
// the checks in its report.
func TestVerifyChecksConsistency(t *testing.T) {
	t.Parallel()
	last := func(v float32) func([]float32) { return func(y []float32) { y[len(y)-1] = v } }
	for name, c := range map[string]struct {
		part string // of the names of files whose outputs the engine changes
		how  func(y []float32)
		code string // of the reason; empty for a pass
		want string
	}{
		"honest":             {"none", nil, "", ""},
		"jitter":             {"check-1-once", last(77), "jitter", "run again in one process, 1 of 3 cases differ, by at most"},
		"NaN the next time":  {"check-0-again", last(float32(math.NaN())), "jitter", "case 0 has NaN in one of the runs"},
		"depends on batches": {"batch", last(float32(math.Inf(1))), "batch", "batch=2: in a batch cases give something else than alone: output y"},
		"wrong at a size":    {"sizes", last(77), "dimension", "the engine computes something else than the reference model: output y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := opened(t, w)
			w.run = func(job toolchain.Job, outDir string) error {
				if c.how != nil {
					change(t, job, outDir, c.part, c.how)
				}
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				w.wantConsistency(t, built.Release)
				return
			}
			if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want CodeLimit with %q", err, c.want)
			}
			report := verified.Engines[0].Parity
			if report.Verdict != evidence.VerdictFail || len(report.Reasons) == 0 {
				t.Errorf("verdict %s with reasons %v, want a failure with some", report.Verdict, report.Reasons)
			}
			for _, r := range report.Reasons {
				if r.Code != c.code {
					t.Errorf("reason %s %q, want the code %s alone", r.Code, r.Message, c.code)
				}
			}
		})
	}
}

// Runs of the same cases may differ by a part of what the engine is off from the reference, or a tenth of what the
// limits allow. A limit can allow no jitter at all, or as much as the limits of outputs.
func TestJitterHasLimits(t *testing.T) {
	t.Parallel()
	one := func(y float32) float32 { return math.Nextafter32(y, 100) }
	more := func(y float32) float32 { return y * (1 + 1e-4) }
	for name, c := range map[string]struct {
		limits string
		change func(float32) float32
		want   string // empty: it is recorded
	}{
		"little":               {"", one, ""},
		"more":                 {"", more, "the engine's own error"},
		"more, by the limits":  {"limits: {consistency: {jitter: limits}}\n", more, ""},
		"little, none allowed": {"limits: {consistency: {jitter: none}}\n", one, "the limits allow no jitter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, onlyFP32+c.limits, build.Options{})
			w.run = func(job toolchain.Job, outDir string) error {
				change(t, job, outDir, "check-1-once", func(y []float32) { y[0] = c.change(y[0]) })
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if c.want == "" {
				if err != nil || verified.Engines[0].Parity.Checks.Beyond()[0].Verdict != evidence.VerdictRecorded {
					t.Fatalf("error %v, checks %+v; want a pass with jitter that is recorded", err, verified.Engines[0].Parity.Checks.Beyond())
				}
				return
			}
			if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), "1 of 3 cases differ") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want CodeLimit with the jitter and %q", err, c.want)
			}
		})
	}
}

// Runs of an engine beyond its cases have a time together. What did not begin in it is named as not run,
// and an engine of which nothing could be run is undecided.
func TestExtraRunsHaveATimeTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits, says string
	}{
		"not wanted": {"", "no consistency check could be done in the time that there is for them; repeat: not run"},
		"required":   {"limits: {consistency: {required: true}}\n", "consistency check repeat, which did not run"},
		"no jitter":  {"limits: {consistency: {jitter: none}}\n", "consistency check repeat, which did not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := w.built(t, onlyFP32+c.limits, build.Options{})
			w.p.Unfinished = t.TempDir()
			w.p.ExtraTime = -time.Hour // so that none of it is left from the beginning
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want CodeLimit with %q", err, c.says)
			}
			if want := "linux-amd64-v1/fp32 is undecided, which is no pass:"; !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if left, err := os.ReadDir(w.p.Unfinished); err != nil || len(left) != 0 {
				t.Errorf("kept %v, error %v; want nothing: every case was run, so there is nothing to go on with", left, err)
			}
			report := verified.Engines[0].Parity
			if report.Verdict != evidence.VerdictUndecided || len(report.Checks.Beyond()) == 0 {
				t.Fatalf("verdict %s with checks %+v, want undecided and some", report.Verdict, report.Checks.Beyond())
			}
			for _, check := range ran(report) {
				if check.Verdict != evidence.VerdictUndecided || !strings.Contains(check.Message, "no time is left") {
					t.Errorf("%s: %s, %q; want undecided, since no time is left", check.Trial, check.Verdict, check.Message)
				}
			}
			if !slices.ContainsFunc(w.steps, func(s progress.Step) bool { return strings.Contains(s.Note, "2 undecided: repeat; beyond") }) {
				t.Errorf("steps %+v, want one that names the check", w.steps)
			}
		})
	}
}

// An engine that hangs in one check is undecided, by its name, and all others run: no run may take more
// than half of what is left.
func TestHangInOneCheck(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	built := opened(t, w)
	var hung time.Duration
	w.p.Now = func() time.Time { return time.Now().Add(hung) }
	w.run = func(job toolchain.Job, _ string) error {
		batchOfTwo := func(in toolchain.Input) bool { return strings.HasPrefix(in.Name, "check-2-000-batch") }
		if job.Verb != toolchain.VerbRun || job.Run.Engines[0].ID != "engine-0" || !slices.ContainsFunc(job.Inputs, batchOfTwo) {
			return nil
		}
		hung += job.Budget.Time
		return registry.Errorf(registry.CodeUnavailable, "onnxruntime ran longer than %s and was stopped", job.Budget.Time)
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if want := "the consistency check batch batch=2 did not end"; registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want CodeLimit with %q", err, want)
	}
	report := verified.Engines[0].Parity
	if report.Verdict != evidence.VerdictUndecided || len(report.Reasons) != 1 || len(report.Checks.Beyond()) != 10 {
		t.Errorf("%s with reasons %v and checks %+v, want undecided with one reason, and 10 checks", report.Verdict, report.Reasons, report.Checks.Beyond())
	}
	for _, p := range report.Checks.Beyond() {
		if want := map[bool]evidence.Verdict{false: evidence.VerdictPass, true: evidence.VerdictUndecided}[p.Size == "batch=2"]; p.Verdict != want {
			t.Errorf("%s %s: %s %q, want %s", p.Trial, p.Size, p.Verdict, p.Message, want)
		}
	}
}

// ran are the checks of a report that there are for its model.
func ran(p evidence.ParityReport) evidence.Checks {
	return slices.DeleteFunc(slices.Clone(p.Checks.Beyond()), evidence.Check.NotForModel)
}

// An engine that loads for long takes no check from itself nor from another.
func TestSlowLoad(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.loads = map[string]time.Duration{"engine-1": 25 * time.Second}
	built := w.built(t, digits, build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil || len(verified.Engines) != 2 {
		t.Fatalf("error %v, %d engines; want none and 2", err, len(verified.Engines))
	}
	for _, e := range verified.Engines {
		if len(ran(e.Parity)) != 5 {
			t.Errorf("%s has the checks %+v, want repeat, process, load, beyond and golden", e.Label, e.Parity.Checks.Beyond())
		}
		for _, p := range ran(e.Parity) {
			if p.Verdict != evidence.VerdictPass {
				t.Errorf("%s: %s: %s %q, want a pass", e.Label, p.Trial, p.Verdict, p.Message)
			}
		}
	}
}

// wantConsistency checks the consistency checks of the one report that was attached.
func (w *world) wantConsistency(t *testing.T, release artifact.Release) {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), "staging", release)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range claims {
		if c.Statement.PredicateType != evidence.PredicateParity {
			continue
		}
		var report evidence.ParityReport
		if err := json.Unmarshal(c.Statement.Predicate, &report); err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Checks.Beyond() {
			got = append(got, strings.TrimSpace(string(p.Trial)+" "+p.Size))
			if p.Verdict != evidence.VerdictPass || p.Cases != 3 && p.Trial != evidence.TrialDimension {
				t.Errorf("%s %s: %s of %d cases, %q; want a pass", p.Trial, p.Size, p.Verdict, p.Cases, p.Message)
			}
		}
	}
	want := []string{"repeat", "process", "load loads=3", "batch batch=2", "batch batch=8", "batch batch=7",
		"dimension width=4", "dimension all max: batch=8, width=4", "beyond inputs*2", "golden"}
	if !slices.Equal(got, want) {
		t.Errorf("the attached report has the consistency checks %q, want %q", got, want)
	}
}

// Engines that run chunk by chunk are checked as well, each in a process of its own.
func TestConsistencyOfChunks(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.p.ChunkFrom = 1
	built := opened(t, w)
	processes := 0
	w.run = func(job toolchain.Job, _ string) error {
		if !checksConsistency(job) {
			return nil
		}
		if e := job.Run.Engines[0]; e.ID != "reference" {
			processes++
		} else if e.Load != nil || job.Run.Level != "disable_all" || job.Run.Threads != 1 {
			t.Errorf("the reference runs with %v, level %q, %d threads; want it as for golden outputs", e.Load, job.Run.Level, job.Run.Threads)
		}
		return nil
	}
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Fatal(err)
	}
	w.wantConsistency(t, built.Release)
	if steps := w.done(progress.Done); processes != 2 || !slices.Contains(steps, "check consistency of linux-amd64-v1/fp32") {
		t.Errorf("%d processes, steps %q; want two, of which one is for loads, and a step that names the engine", processes, steps)
	}
}

// ONNX Runtime keeps what it computes for a case in batches and from run to run.
func TestConsistencyOfONNXRuntime(t *testing.T) {
	t.Parallel()
	w := setupReal(t, 1.5)
	built := opened(t, w)
	if _, err := verify.Verify(t.Context(), w.p, built.Ref); err != nil {
		t.Fatal(err)
	}
	w.wantConsistency(t, built.Release)
}

// An engine is loaded several times in one process: one that computes something else in a load fails, and one that cannot be loaded
// again for want of memory is not judged by it.
func TestVerifyLoadsAgain(t *testing.T) {
	t.Parallel()
	load := func(job toolchain.Job) bool {
		return job.Verb == toolchain.VerbRun && strings.HasPrefix(job.Run.Engines[0].ID, "engine-0-load-")
	}
	for name, c := range map[string]struct {
		how     func(outDir string) error
		verdict evidence.Verdict // of the check
		says    string
	}{
		"all are the same": {func(string) error { return nil }, evidence.VerdictPass, ""},
		"one is off": {func(outDir string) error {
			path := filepath.Join(outDir, "outputs", "engine-0-load-2", "check-0-load-00000.safetensors")
			read, err := tensorfile.ReadFile(path, tensorfile.Limits{})
			if err != nil {
				return err
			}
			if read["y"], err = tensor.New(make([]float32, read["y"].Len()), read["y"].Shape...); err != nil {
				return err
			}
			writeTensors(t, path, read)
			return nil
		}, evidence.VerdictFail, "run again after load 2 of 3 in one process, 3 of 3 cases differ"},
		"it crashes": {func(string) error { return registry.Errorf(registry.CodeInternal, "ended by signal 11") }, evidence.VerdictFail,
			"the engine does not run where it is loaded several times: onnxruntime: ended by signal 11"},
		"memory is short": {func(string) error { return registry.Errorf(registry.CodeUnavailable, "out of memory") }, evidence.VerdictUndecided, "out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			built := opened(t, w)
			w.run = func(job toolchain.Job, outDir string) error {
				if !load(job) {
					return nil
				}
				return c.how(outDir)
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if failed := c.verdict == evidence.VerdictFail; failed != registry.HasCode(err, registry.CodeLimit) || !failed && err != nil {
				t.Fatalf("error %v, want one of limits: %t", err, failed)
			}
			checks := verified.Engines[0].Parity.Checks.Beyond()
			at := slices.IndexFunc(checks, func(p evidence.Check) bool { return p.Trial == evidence.TrialLoad })
			if at < 0 || checks[at].Verdict != c.verdict || !strings.Contains(checks[at].Message, c.says) {
				t.Errorf("checks %+v, want %s for load that says %q", checks, c.verdict, c.says)
			}
		})
	}
}

// A fault in one of 300 requests passes the usual repeated runs, and is found by as many as the limits ask for.
func TestRareFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits string
		extra  time.Duration // for runs beyond the cases; 0: as usual
		want   string        // in the error; empty: a pass
		missed int           // the difference that the runs miss half of the time: one in so many requests
	}{
		"the usual runs":    {"", 0, "", 0},
		"one of 500":        {"limits: {consistency: {rare: 500}}\n", 0, "has NaN in one of the runs", 500},
		"one of 2, no more": {"limits: {consistency: {rare: 2}}\n", 0, "", 2},
		"without the time": {"limits: {consistency: {rare: 500}}\n", -time.Hour,
			"the limits ask for repeated runs that miss a difference in 1 of 500 requests at most half of the time, and none ran", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			w.p.ExtraTime = c.extra
			requests := 0
			w.run = func(job toolchain.Job, outDir string) error {
				change(t, job, outDir, ".safetensors", func(y []float32) {
					for i := range y {
						if requests++; requests%300 == 0 {
							y[i] = float32(math.NaN())
						}
					}
				})
				return nil
			}
			built := w.built(t, onlyFP32+c.limits, build.Options{})
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if (err == nil) != (c.want == "") || err != nil && (registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v after %d requests, want CodeLimit with %q", err, requests, c.want)
			}
			if missed := verified.Engines[0].Parity.Checks.MissedOneIn(); missed < c.missed {
				t.Errorf("the runs would miss one of %d, want one of %d or more", missed, c.missed)
			}
			asks := slices.ContainsFunc(w.steps, func(s progress.Step) bool {
				return strings.HasPrefix(s.Note, "the limits ask for 346 repeated runs of each engine, about ")
			})
			if asks != strings.Contains(c.limits, "500") {
				t.Errorf("steps %+v, want one with the number of runs that the limits ask for", w.steps)
			}
		})
	}
}
