package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// The table that calibration leaves is all that quantization takes from it: from the
// table the same bytes are made, without a case.
func TestRangesMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	for name, options := range map[string]map[string]any{
		"minmax":     {"observer": "minmax"},
		"entropy":    {"observer": "entropy", "per_channel": true},
		"percentile": {"observer": "percentile", "percentile": 99.9},
		"qoperator":  {"format": "qoperator", "activation_type": "int8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := driver.Do(t.Context(), quantize(t, options), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ranges, ok := made.File("calibration.json")
			if !ok {
				t.Fatal("no table")
			}
			job := quantize(t, options)
			job.Inputs[1] = toolchaintest.Input(t, toolchain.RoleRanges, "calibration.json", ranges.Path)
			again, err := driver.Do(t.Context(), job, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range made.Files {
				if twin, ok := again.File(file.Name); !ok || twin.Digest != file.Digest {
					t.Errorf("%s is %s, from the table %s", file.Name, file.Digest, twin.Digest)
				}
			}
		})
	}
	made, err := driver.Do(t.Context(), quantize(t, nil), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ranges, _ := made.File("calibration.json")
	job := quantize(t, map[string]any{"observer": "entropy"})
	job.Inputs[1] = toolchaintest.Input(t, toolchain.RoleRanges, "calibration.json", ranges.Path)
	if _, err := driver.Do(t.Context(), job, t.TempDir()); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("ranges of another observer: %v, want CodeInvalid", err)
	}
}

// Ranges without an end are refused: a scale for them would leave one number of all.
func TestRangesEnd(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	made, err := driver.Do(t.Context(), quantize(t, nil), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ranges, _ := made.File("calibration.json")
	text, err := os.ReadFile(ranges.Path)
	if err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "calibration.json")
	if err := os.WriteFile(table, []byte(strings.ReplaceAll(string(text), `"highest": 1.0,`, `"highest": Infinity,`)), 0o600); err != nil {
		t.Fatal(err)
	}
	job := quantize(t, nil)
	job.Inputs[1] = toolchaintest.Input(t, toolchain.RoleRanges, "calibration.json", table)
	_, err = driver.Do(t.Context(), job, t.TempDir())
	if want := "calibration gives 'image' the range from 0.0 to inf"; !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want CodeInvalid and %q", err, want)
	}
}

// A tolerance is kept by leaving nodes in full precision: fewer for a wider one.
func TestMixedPrecisionByTolerance(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	size := func(atol float64) int64 {
		outcome, err := driver.Do(t.Context(), quantize(t, map[string]any{"method": "fp16", "atol": atol}), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, _ := outcome.File("model.onnx")
		return open(t, file.Path).InitializerBytes
	}
	full := open(t, digits+"digits.onnx").InitializerBytes
	if wide, narrow := size(1), size(0.002); narrow <= wide || narrow >= full {
		t.Errorf("of %d bytes of weights %d are left within 1, %d within 0.002: want more, and not all", full, wide, narrow)
	}
	_, err := driver.Do(t.Context(), quantize(t, map[string]any{"method": "fp16", "atol": 1e-12}), t.TempDir())
	if registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a tolerance that nothing keeps: %v, want CodeInvalid", err)
	}
}
