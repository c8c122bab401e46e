//go:build cgo

package pipeline_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Static quantization takes the table of ranges of the last release in place of calibration, so that every machine
// makes the same bytes. Another calibration has another table.
func TestRangesOfEarlierBuilds(t *testing.T) {
	t.Parallel()
	static := strings.Replace(digits, "dynamic", "static", 1) + "calibration: calibration/\n"
	w := setup(t, 1.5)
	w.calibration(t, []float32{4, 5})
	var got string // what the quantizer read
	w.quantize = func(job toolchain.Job) (quantized, error) {
		for _, in := range job.Inputs {
			if in.Role != toolchain.RoleModel {
				got = in.Role
			}
		}
		return quantized{weight: 1.5, ranges: `{"x": [0, 5]}`}, nil
	}
	w.built(t, static, build.Options{})
	if got != toolchain.RoleCalibration {
		t.Errorf("the first build quantized by %s, want %s", got, toolchain.RoleCalibration)
	}
	w.steps = nil
	w.built(t, strings.Replace(static, "1.0.0", "1.1.0", 1), build.Options{})
	if got != toolchain.RoleRanges {
		t.Errorf("the second build quantized by %s, want %s", got, toolchain.RoleRanges)
	}
	noted := func(s progress.Step) bool {
		return s.Name == "quantize int8 for linux-amd64-v1" && s.Note == "from the ranges of 1.0.0"
	}
	if !slices.ContainsFunc(w.steps, noted) {
		t.Errorf("steps %v, want a note of whose ranges were taken", w.steps)
	}
	writeCases(t, filepath.Join(w.dir, "calibration", "x.safetensors"), []float32{6, 7})
	w.built(t, strings.Replace(static, "1.0.0", "1.2.0", 1), build.Options{})
	if got != toolchain.RoleCalibration {
		t.Errorf("a build with another calibration quantized by %s, want %s", got, toolchain.RoleCalibration)
	}
}

// What a compiler learns for a target comes back in the next build for that target alone, and is no file of the engine.
func TestTuningRecords(t *testing.T) {
	t.Parallel()
	w := setup(t, 1.5)
	given := make(map[string][]string) // by version of the model: the records that its compiler got
	version := "1.0.0"
	w.run = func(job toolchain.Job, outDir string) error {
		if job.Verb != toolchain.VerbCompile {
			return nil
		}
		var records []string
		for _, in := range job.Inputs {
			if in.Role == toolchain.RoleTuning {
				data, err := os.ReadFile(in.Path)
				if err != nil {
					return err
				}
				records = append(records, in.Name+"="+string(data))
			}
		}
		given[version] = records
		if err := os.MkdirAll(filepath.Join(outDir, toolchain.TuningFolder), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(outDir, toolchain.TuningFolder, "cache.bin"), []byte("learned in "+version), 0o600)
	}
	first := w.built(t, onlyFP32, build.Options{})
	if records := given["1.0.0"]; len(records) != 0 {
		t.Errorf("the first build was given %q, want nothing", records)
	}
	version = "1.1.0"
	second := w.built(t, strings.Replace(onlyFP32, "1.0.0", "1.1.0", 1), build.Options{})
	if want := []string{"cache.bin=learned in 1.0.0"}; !slices.Equal(given["1.1.0"], want) {
		t.Errorf("the second build was given %q, want %q", given["1.1.0"], want)
	}
	if first.Release.Engines[0].Bytes != second.Release.Engines[0].Bytes {
		t.Errorf("engines of %d and %d bytes, want the same: a record is no part of them", first.Release.Engines[0].Bytes, second.Release.Engines[0].Bytes)
	}
	for name, c := range map[string]struct {
		built build.Result
		want  bool
	}{"first": {first, false}, "second": {second, true}} {
		claims, _, err := w.Claims(t.Context(), "staging", c.built.Release)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(claims, func(claim evidence.Claim) bool {
			return strings.Contains(string(claim.Statement.Predicate), "tuning record cache.bin")
		})
		if said != c.want {
			t.Errorf("provenance of the %s build names a tuning record: %t, want %t", name, said, c.want)
		}
	}
	version = "1.2.0"
	w.built(t, strings.NewReplacer("1.0.0", "1.2.0", "linux/amd64/v1", "linux/amd64/v2").Replace(onlyFP32), build.Options{})
	if records := given["1.2.0"]; len(records) != 0 {
		t.Errorf("a build for another target was given %q, want nothing", records)
	}
}

// What an earlier build learned counts if a trusted builder signed its release.
func TestRangesOfABuilderThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	static := strings.Replace(digits, "dynamic", "static", 1) + "calibration: calibration/\n"
	w := setup(t, 1.5)
	w.calibration(t, []float32{4, 5})
	var got []string
	w.quantize = func(job toolchain.Job) (quantized, error) {
		for _, in := range job.Inputs {
			if in.Role != toolchain.RoleModel {
				got = append(got, in.Role)
			}
		}
		return quantized{weight: 1.5, ranges: `{"x": [0, 5]}`}, nil
	}
	w.built(t, static, build.Options{})
	w.Keys.Retrust(slices.DeleteFunc(registrytest.RoleKeys(), func(e trust.TrustEntry) bool { return e.Key == string(evidence.RoleBuilder) }))
	got = nil
	// The build ends where it signs, if not before: what it is given to quantize is what counts.
	_, err := build.Build(t.Context(), w.p, w.spec(t, strings.Replace(static, "1.0.0", "1.1.0", 1)), build.Options{})
	if !slices.Equal(got, []string{toolchain.RoleCalibration}) {
		t.Errorf("quantized by %q, error %v; want the calibration data, and not the ranges that somebody stored", got, err)
	}
}
