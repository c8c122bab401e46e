package script_test

import (
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Scalars, float64 and shapes go into engines and come out of them as the model has them, or the compiler refuses the model by the name
// of what it lacks.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	maker, common := absolute(t, "testdata/interfaces.py"), absolute(t, "../drivers")
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), maker, common)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		double  float64 // how near float64 is
		refuses map[string]string
	}{
		"openvino": {double: 1e-6}, // its plugin for CPUs computes in float32
		"iree":     {double: 1e-13, refuses: map[string]string{"double-tanh": "IREE has no code for tanh, which the model computes in float64"}},
		"tvm":      {double: 1e-13},
		"xla":      {double: 1e-13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver := script.New(script.Installed(toolchaintest.Installed(t, name), name), driverproc.Budget{})
			for _, model := range []string{"scalar", "double", "double-output", "double-tanh", "shape", "shape-alone", "places"} {
				got, err := computed(t, driver, name, filepath.Join(dir, model))
				if says := c.refuses[model]; says != "" {
					if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), says) {
						t.Errorf("%s: %v, want a refusal that says %s", model, err, says)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", model, err)
					continue
				}
				near(t, model, got, readShard(t, filepath.Join(dir, model+"-want.safetensors")), c.double)
			}
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// computed compiles a model for any processor, and returns the outputs of its cases.
func computed(t *testing.T, driver toolchain.Driver, name, model string) (map[string]tensor.Tensor, error) {
	t.Helper()
	source, err := drivers.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	options, err := source.Profile.CompileOptions(artifact.Target{Name: "any", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v1"}}, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbCompile, Options: options,
		Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", model+".onnx")}}, t.TempDir())
	if err != nil {
		return nil, err
	}
	job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleCases, "cases.safetensors", model+"-cases.safetensors")},
		Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "engine", Path: "engine/" + source.Profile.Entry}}}}
	for _, f := range engine.Files {
		job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleModel, "engine/"+f.Name, f.Path))
	}
	outcome, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		return nil, err
	}
	file, _ := outcome.File("outputs/engine/cases.safetensors")
	return readShard(t, file.Path), nil
}

func readShard(t *testing.T, path string) map[string]tensor.Tensor {
	t.Helper()
	read, err := tensorfile.ReadFile(path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// near wants the same outputs, floats as near as that, relative to their size; with 0, and all else, exactly.
func near(t *testing.T, model string, got, want map[string]tensor.Tensor, within float64) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
			t.Errorf("%s: output %s is %s %v, want %s %v", model, name, g.DType, g.Shape, w.DType, w.Shape)
			continue
		}
		if within == 0 || w.DType.Class() != tensor.ClassFloat {
			if !slices.Equal(g.Data, w.Data) {
				t.Errorf("%s: output %s is %v, want %v", model, name, g.Data, w.Data)
			}
			continue
		}
		for at := range w.Len() {
			if a, b := g.Float64(at), w.Float64(at); math.Abs(a-b) > within*math.Abs(b) {
				t.Errorf("%s: output %s has %.15g at %d, want %.15g", model, name, a, at, b)
			}
		}
	}
}
