//go:build cgo

package ort_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// TestMain makes this test program answer as the child that it starts.
func TestMain(m *testing.M) {
	os.Exit(toolchaintest.Main(m, map[string]func() int{
		ort.Args()[0]: func() int { return ort.Main(context.Background(), os.Stdin, os.Stderr) },
	}))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, ort.Name)
	toolchaintest.TestDigits(t, ort.Name, func() toolchain.Driver { return ort.New(ort.Options{Installs: installer}) })
}

func TestResponsesFollowTheSchema(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installer(t, ort.Name).Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.CheckResponses(t, driverproc.Program{Path: "/proc/self/exe", Args: ort.Args(), Library: record.LibraryPath()})
}

// The code that decides the outputs is this package and caserun, so both are in the digest of the driver's code.
func TestIdentityCoversTheCode(t *testing.T) {
	t.Parallel()
	identity, err := newDriver(t).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := driverproc.GoCodeDigest("onnxruntime_go v1.35.0", os.DirFS("."), os.DirFS("../caserun"))
	if err != nil {
		t.Fatal(err)
	}
	if identity.Code != want {
		t.Errorf("the code is %s, want %s", identity.Code, want)
	}
}

const (
	digits = "../../../examples/digits/"
	text   = "../../../examples/text/"
)

func newDriver(t *testing.T) toolchain.Driver {
	t.Helper()
	return ort.New(ort.Options{Installs: toolchaintest.Installer(t, ort.Name)})
}

// write writes a shard of cases and makes it an input.
func write(t *testing.T, name string, tensors map[string]tensor.Tensor) toolchain.Input {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shard")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return toolchaintest.Input(t, toolchain.RoleCases, name, path)
}

func model(t *testing.T, name string) toolchain.Input {
	t.Helper()
	return toolchaintest.Input(t, toolchain.RoleModel, name, filepath.Join("testdata", name))
}

// runJob is a run of one model of testdata on shards.
func runJob(t *testing.T, name string, shards ...toolchain.Input) toolchain.Job {
	t.Helper()
	return toolchain.Job{
		Verb:   toolchain.VerbRun,
		Inputs: append([]toolchain.Input{model(t, name)}, shards...),
		Run:    &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "m", Path: name}}},
	}
}

func wantCode(t *testing.T, err error, code registry.Code) {
	t.Helper()
	if !registry.HasCode(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	job := toolchain.Job{Verb: toolchain.VerbProbe, Inputs: []toolchain.Input{model(t, "half.onnx")}}
	outcome, err := newDriver(t).Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tool":{"onnxruntime":"1.30.0"},"models":[{"name":"half.onnx",` +
		`"inputs":[{"name":"h","dtype":"float16","shape":[-1,2]},{"name":"b","dtype":"bool","shape":[-1]}],` +
		`"outputs":[{"name":"twice","dtype":"float16","shape":[-1,2]},{"name":"not","dtype":"bool","shape":[-1]}]}]}`
	if got := string(outcome.Result); got != want {
		t.Errorf("probe:\n got %s\nwant %s", got, want)
	}
}

func TestCompileIsReproducible(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	source := toolchaintest.Input(t, toolchain.RoleModel, "digits.onnx", digits+"digits.onnx")
	seen := make(map[registry.Digest]bool)
	for _, level := range []string{"basic", "extended"} {
		job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: []toolchain.Input{source}, Options: map[string]any{"level": level}}
		var first registry.Digest
		for range 2 {
			outcome, err := driver.Do(t.Context(), job, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			file, ok := outcome.File("model.onnx")
			if !ok || len(outcome.Files) != 1 {
				t.Fatalf("%s: files %v, want model.onnx alone", level, outcome.Files)
			}
			if first != "" && file.Digest != first {
				t.Errorf("%s: two processes, two engines: %s, %s", level, first, file.Digest)
			}
			first = file.Digest
		}
		seen[first] = true
	}
	if seen[source.Digest] {
		t.Error("compile left the source as it was")
	}
}

// A model with external data compiles to one with external data, under names that do
// not depend on where it lies, and the two compute alike.
func TestCompileExternalData(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	source := []toolchain.Input{model(t, "external.onnx"), model(t, "external.data")}
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbCompile, Inputs: source}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Files) != 2 || outcome.Files[0].Name != "model.onnx" || outcome.Files[1].Name != "model.onnx.data" || outcome.Files[1].Size < 2400 {
		t.Fatalf("files %v, want model.onnx and model.onnx.data", outcome.Files)
	}
	job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: source, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{
		{ID: "source", Path: "external.onnx"}, {ID: "compiled", Path: "compiled/model.onnx"},
	}}}
	for _, f := range outcome.Files {
		job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleModel, "compiled/"+f.Name, f.Path))
	}
	x := make([]float32, 40)
	for i := range x {
		x[i] = float32(i)
	}
	job.Inputs = append(job.Inputs, write(t, "s", map[string]tensor.Tensor{"x": floats([]int64{2, 20}, x...)}))
	ran, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := read(t, ran, "outputs/source/s")["y"]
	wantTensor(t, "y", read(t, ran, "outputs/compiled/s")["y"], y)
	if len(y.Shape) != 2 || y.Shape[0] != 2 || y.Shape[1] != 30 {
		t.Errorf("y has the shape %v, want [2 30]", y.Shape)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	garbage := filepath.Join(t.TempDir(), "garbage.onnx")
	if err := os.WriteFile(garbage, []byte("this is no protocol buffer at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, job := range map[string]toolchain.Job{
		"level all":      {Inputs: []toolchain.Input{model(t, "half.onnx")}, Options: map[string]any{"level": "all"}},
		"unknown option": {Inputs: []toolchain.Input{model(t, "half.onnx")}, Options: map[string]any{"lvl": "basic"}},
		"no model":       {},
		"unknown op":     {Inputs: []toolchain.Input{model(t, "alien.onnx")}},
		"no onnx":        {Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "m.onnx", garbage)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job.Verb = toolchain.VerbCompile
			_, err := driver.Do(t.Context(), job, t.TempDir())
			wantCode(t, err, registry.CodeInvalid)
			t.Log(err)
		})
	}
}
