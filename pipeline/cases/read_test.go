package cases_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// classifier takes three numbers and knows two classes.
func classifier() validators.Interface {
	batch := validators.Dim{Symbol: "batch"}
	return validators.Interface{
		Inputs:  []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{batch, {Size: 3}}}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{batch, {Size: 2}}}},
		Dims:    map[string]validators.DimRange{"batch": validators.DefaultDimRange()},
	}
}

// shard writes two cases for the classifier, and a tensor called label; it gives their folder.
func shard[T tensor.Scalar](t *testing.T, x float32, labels ...T) string {
	t.Helper()
	inputs, err := tensor.New([]float32{0, 0, 0, 0, 0, x}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	label, err := tensor.New(labels, int64(len(labels)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, map[string]tensor.Tensor{"x": inputs, "label": label}, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// labelsOf reads the cases of a folder and returns which of their tensors has the labels.
func labelsOf(t *testing.T, dir, role, named string, iface validators.Interface) (string, error) {
	t.Helper()
	folder, err := confined.New(dir, "the folder of the spec")
	if err != nil {
		t.Fatal(err)
	}
	set, err := cases.Read(folder, ".", role, iface, t.TempDir())
	if err == nil {
		err = set.FindLabels(named, iface, nil)
	}
	return set.Record.Labels, err
}

// What cannot be labels is refused where the spec names it, and otherwise is none.
func TestLabels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dir, want string }{
		"labels":   {shard[int64](t, 0, 0, 1), ""},
		"class":    {shard[int64](t, 0, 0, 2), "label 2 at 1: want the number of a class of output y, from 0 to 1"},
		"negative": {shard[int64](t, 0, -1, 1), "label -1 at 0: want the number of a class"},
		"floats":   {shard[float32](t, 0, 0, 1), `dtype is float32: want integers, the numbers of classes; if output "y" has quantities and no scores, write outputs: {"y": {kind: value}}`},
		"few":      {shard[int64](t, 0, 0), "shape is [1]: want 2 labels first, one for each case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := labelsOf(t, c.dir, toolchain.RoleCases, "label", classifier())
			found, unnamed := labelsOf(t, c.dir, toolchain.RoleCases, "", classifier())
			if c.want == "" {
				if err != nil || unnamed != nil || found != "label" {
					t.Errorf("labels %q, errors %v and %v", found, err, unnamed)
				}
				return
			}
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want CodeInvalid and %q", err, c.want)
			}
			if unnamed != nil || found != "" {
				t.Errorf("where no labels are named: %q, %v", found, unnamed)
			}
		})
	}
}

// No range holds a NaN; a model may well take one, so cases may have it.
func TestCalibrationWithNaN(t *testing.T) {
	t.Parallel()
	dir := shard[int64](t, float32(math.NaN()), 0, 1)
	_, err := labelsOf(t, dir, toolchain.RoleCalibration, "", classifier())
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), `a.safetensors: tensor "x": case 1 has a NaN`) {
		t.Errorf("calibration: %v, want CodeInvalid", err)
	}
	if _, err := labelsOf(t, dir, toolchain.RoleCases, "", classifier()); err != nil {
		t.Errorf("cases: %v", err)
	}
}

// A bad file is named once.
func TestBadShardIsNamedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.safetensors"), []byte("no tensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := labelsOf(t, dir, toolchain.RoleCases, "", classifier())
	if !registry.HasCode(err, registry.CodeInvalid) || strings.Count(err.Error(), "a.safetensors") != 1 {
		t.Errorf("error %v, want CodeInvalid and the file once", err)
	}
}
