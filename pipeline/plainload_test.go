//go:build cgo

package pipeline_test

import (
	"bytes"
	"encoding/binary"
	"errors"
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
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// plain reports whether a job loads an engine with a profile without it.
func plain(job toolchain.Job) bool {
	return job.Verb == toolchain.VerbRun && len(job.Run.Engines) == 1 && job.Run.Engines[0].ID == "engine-0" &&
		job.Run.Engines[0].Load != nil && len(job.Run.Engines[0].Load) == 0
}

// An engine with a load profile is run by it, and once more without it. What comes of that is in the
// report, and a failure there is one of the engine unless its nodes keep to the profile.
func TestVerifyPlainLoad(t *testing.T) {
	t.Parallel()
	crash := func(toolchain.Job, string) error {
		return registry.Errorf(registry.CodeInternal, "onnxruntime was ended by signal 11")
	}
	memory := func(toolchain.Job, string) error {
		return registry.Errorf(registry.CodeUnavailable, "onnxruntime used up its memory")
	}
	for name, c := range map[string]struct {
		load     string
		run      func(job toolchain.Job, outDir string) error // of the plain load; nil: as it is
		plain    evidence.Verdict
		verdict  evidence.Verdict
		contains string
	}{
		"passes":                   {"{options: {graph_optimization_level: basic}}", nil, evidence.VerdictPass, evidence.VerdictPass, ""},
		"crashes":                  {"{options: {graph_optimization_level: basic}}", crash, evidence.VerdictFail, evidence.VerdictFail, "signal 11"},
		"crashes, and is required": {"{options: {graph_optimization_level: basic}, required: true}", crash, evidence.VerdictRecorded, evidence.VerdictPass, "signal 11"},
		"runs out of memory":       {"{options: {graph_optimization_level: basic}}", memory, evidence.VerdictUndecided, evidence.VerdictUndecided, "used up its memory"},
		"is wrong":                 {"{options: {graph_optimization_level: basic}}", wrongValues(t), evidence.VerdictFail, evidence.VerdictFail, "signal to noise ratio"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 1.5)
			text := strings.Replace(onlyFP32, "[fp32]", "[{name: fp32, load: "+c.load+"}]", 1)
			built := w.built(t, text, build.Options{})
			loaded := make(map[string]int)
			w.run = func(job toolchain.Job, outDir string) error {
				if job.Verb != toolchain.VerbRun {
					return nil
				}
				if plain(job) {
					loaded["plain"]++
					if c.run != nil {
						return c.run(job, outDir)
					}
					return nil
				}
				for _, e := range job.Run.Engines {
					if e.ID == "engine-0" && e.Load["graph_optimization_level"] == "basic" {
						loaded["by profile"]++
					}
				}
				return nil
			}
			verified, err := verify.Verify(t.Context(), w.p, built.Ref)
			if failed := registry.CodeOf(err) == registry.CodeLimit; err != nil && !failed || failed != (c.verdict != evidence.VerdictPass) {
				t.Fatalf("error %v, want the verdict %s", err, c.verdict)
			}
			p := verified.Engines[0].Parity
			plain := plainLoad(p)
			if plain.Verdict != c.plain || plain.Cases != 3 || !strings.Contains(plain.Message, c.contains) {
				t.Errorf("plain load %+v, want %s on 3 cases with %q", plain, c.plain, c.contains)
			}
			if p.Verdict != c.verdict || p.Settings.Load != artifact.LoadByProfile || p.Settings.Level != "basic" {
				t.Errorf("verdict %s, settings %+v: want %s by a load profile of level basic", p.Verdict, p.Settings, c.verdict)
			}
			if loaded["plain"] != 1 || loaded["by profile"] < 3 { // on the cases, for consistency and timed
				t.Errorf("the engine was loaded %v, want three times or more by its profile and once plain", loaded)
			}
			e := verified.Release.Engines[0]
			if e.Load == nil || e.Load.Options["graph_optimization_level"] != "basic" {
				t.Errorf("the engine of the release has the profile %v, want level basic", e.Load)
			}
		})
	}
}

// plainLoad returns the check of a report's plain load; the zero Check without one.
func plainLoad(p evidence.ParityReport) evidence.Check {
	check, _ := p.Checks.Of(evidence.TrialPlainLoad)
	return check
}

// A plain load in which nothing could be compared leaves the engine undecided, although there is time: the
// reference is NaN in the cases that it runs.
func TestPlainLoadWithNothingToCompare(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	w.p.Draw = func(int) int { return 0 }
	x := make([]float32, 36)
	for i := range x {
		x[i] = math.Float32frombits(0x7fc00000 + uint32(i)) // no copies of each other
	}
	x[8], x[17], x[26], x[35] = 1, -2, 3, 4 // between those that 32 of 36 are
	writeCases(t, filepath.Join(w.dir, "cases", "cases-00000.safetensors"), x)
	text := strings.Replace(onlyFP32, "[fp32]", "[{name: fp32, load: {options: {graph_optimization_level: basic}}}]", 1)
	built := w.built(t, text, build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if want := "a plain load of the engine, without its load profile, was not judged: output y has no finite elements"; registry.CodeOf(err) != registry.CodeLimit || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want CodeLimit with %q", err, want)
	}
	if p := verified.Engines[0].Parity; p.Verdict != evidence.VerdictUndecided ||
		plainLoad(p).Verdict != evidence.VerdictUndecided {
		t.Errorf("verdict %s, plain load %+v; want both undecided", p.Verdict, plainLoad(p))
	}
}

// An engine without a load profile is loaded as the runtime does by itself, everywhere; the
// golden outputs are of a fixed run.
func TestVerifyLoadsPlainly(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	fixed, plainly := 0, 0
	w.run = func(job toolchain.Job, _ string) error {
		if job.Verb != toolchain.VerbRun {
			return nil
		}
		for _, e := range job.Run.Engines {
			switch {
			case e.Load == nil && e.ID == "reference" && job.Run.Threads == 1 && job.Run.Level == "disable_all":
				fixed++
			case e.Load != nil && len(e.Load) == 0 && job.Run.Threads == 0 && job.Run.Level == "":
				plainly++
			default:
				t.Errorf("engine %s was run with %v, level %q and %d threads", e.ID, e.Load, job.Run.Level, job.Run.Threads)
			}
		}
		return nil
	}
	built := w.built(t, onlyFP32, build.Options{})
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	// The check of the build, the cases, a consistency check, the loads, and the engine and the reference when timed.
	// Fixed are the golden outputs of the build and their check.
	if fixed != 2 || plainly != 5+loadsInTests {
		t.Errorf("%d fixed runs and %d plain ones, want 2 and 8", fixed, plainly)
	}
	p := verified.Engines[0].Parity
	if p.Settings.Load != artifact.LoadDefault || p.Settings.Threads != 0 || p.Settings.Level != "" || plainLoad(p).Trial != "" {
		t.Errorf("settings %+v and plain load %v, want %q alone", p.Settings, plainLoad(p), artifact.LoadDefault)
	}
}

// wrongValues writes other values than the engine left.
func wrongValues(t *testing.T) func(toolchain.Job, string) error {
	return func(_ toolchain.Job, outDir string) error {
		shard := filepath.Join(outDir, "outputs", "engine-0", "cases-00000.safetensors")
		f, err := tensorfile.Open(shard, tensorfile.Limits{})
		if err != nil {
			return err
		}
		all := make(map[string]tensor.Tensor)
		for _, name := range f.Names() {
			if all[name], err = f.Rows(name, 0, 3); err != nil {
				return errors.Join(err, f.Close())
			}
			all[name] = tensor.Tensor{DType: all[name].DType, Shape: all[name].Shape, Data: make([]byte, len(all[name].Data))}
		}
		if err := f.Close(); err != nil {
			return err
		}
		out, err := os.Create(shard)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = out.Close() })
		return tensorfile.Write(out, all, nil)
	}
}

// A plain load is judged on cases of all files, not of the first one.
func TestPlainLoadOfAllFiles(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	writeCases(t, filepath.Join(w.dir, "cases", "cases-00001.safetensors"), []float32{5, -6})
	text := strings.Replace(onlyFP32, "[fp32]", "[{name: fp32, load: {options: {graph_optimization_level: basic}}}]", 1)
	built := w.built(t, text, build.Options{})
	var files []string
	w.run = func(job toolchain.Job, _ string) error {
		if plain(job) {
			for _, in := range job.Inputs {
				if in.Role == toolchain.RoleCases {
					files = append(files, in.Name)
				}
			}
		}
		return nil
	}
	verified, err := verify.Verify(t.Context(), w.p, built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if p := plainLoad(verified.Engines[0].Parity); p.Verdict != evidence.VerdictPass || p.Cases != 5 || len(files) != 2 {
		t.Errorf("plain load %+v of the files %q, want a pass on 5 cases of 2 files", p, files)
	}
}

// holds reports whether the cases of a job have this value.
func holds(t *testing.T, job toolchain.Job, want float32) bool {
	t.Helper()
	for _, in := range job.Inputs {
		if in.Role != toolchain.RoleCases {
			continue
		}
		data, err := os.ReadFile(in.Path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, binary.LittleEndian.AppendUint32(nil, math.Float32bits(want))) {
			return true
		}
	}
	return false
}

// A plain load that failed on cases that were drawn is run on them again, beside those that are drawn now: the next draw
// does not decide whether the engine passes.
func TestPlainLoadIsRunAgainWhereItFailed(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(i) + 0.25
	}
	writeCases(t, filepath.Join(w.dir, "cases", "cases-00000.safetensors"), x)
	text := strings.Replace(onlyFP32, "[fp32]", "[{name: fp32, load: {options: {graph_optimization_level: basic}}}]", 1)
	built := w.built(t, text, build.Options{})
	bad, loads := x[20], 0
	w.run = func(job toolchain.Job, _ string) error {
		if !plain(job) {
			return nil
		}
		if loads++; holds(t, job, bad) {
			return registry.Errorf(registry.CodeInternal, "onnxruntime was ended by signal 11")
		}
		return nil
	}
	verify := func(first bool) (*evidence.ParityReport, evidence.Check) {
		t.Helper()
		loads = 0
		w.p.Draw = func(n int) int {
			if first {
				return 0
			}
			return n - 1
		}
		verified, err := verify.Verify(t.Context(), w.p, built.Ref)
		if err != nil && !registry.HasCode(err, registry.CodeLimit) {
			t.Fatal(err)
		}
		report := verified.Engines[0].Parity
		return &report, plainLoad(report)
	}
	if r, p := verify(false); r.Verdict != evidence.VerdictPass || p.Cases != 32 || p.Drawn != nil || loads != 1 {
		t.Fatalf("without the bad case: %s, plain load %+v in %d loads; want a pass on 32 cases", r.Verdict, p, loads)
	}
	r, failed := verify(true)
	if r.Verdict != evidence.VerdictFail || failed.Cases != 32 || len(failed.Drawn) != 32 || failed.Drawn[10] != 20 {
		t.Fatalf("with the bad case: %s, plain load %+v; want a failure that names the drawn cases", r.Verdict, failed)
	}
	for range 2 {
		if r, p := verify(false); r.Verdict != evidence.VerdictFail || !slices.Equal(p.Drawn, failed.Drawn) || loads != 1 ||
			!strings.Contains(p.Message, "on the cases on which it failed before: ") {
			t.Errorf("with another draw: %s, plain load %+v in %d loads; want the same failure", r.Verdict, p, loads)
		}
	}
	bad = -1
	if r, p := verify(false); r.Verdict == evidence.VerdictFail || p.Verdict != evidence.VerdictPass || p.Cases != 64 || loads != 2 {
		t.Errorf("where all pass: %s, plain load %+v in %d loads; want a pass on 64 cases in two", r.Verdict, p, loads)
	}
}
