package manifest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// python is a Python with numpy.
func python(t *testing.T) string {
	t.Helper()
	record, err := toolchaintest.Installer(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	return record.Interpreter()
}

const standIns = "testdata/vendors/"

// copied copies a file, or the files below a folder, into a folder.
func copied(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if name == "." {
			name = filepath.Base(from)
		}
		target := filepath.Join(to, name)
		text, errRead := os.ReadFile(path)
		return errors.Join(err, errRead, os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, text, 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runner opens the runner of an example beside the stand-ins of its packages, after change, which may be nil, has had its folder.
func (v vendor) runner(t *testing.T, m manifest.Manifest, change func(dir string)) toolchain.Driver {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Base(m.Run.Program)
	for _, from := range []string{"../../../examples/toolchains/runners/" + name, standIns + "conversation.py", standIns + "network.py", standIns + v.runs} {
		copied(t, from, dir)
	}
	if v.runs == "onnxruntime" {
		copied(t, standIns+"onnxruntime/run", dir)
	}
	if change != nil {
		change(dir)
	}
	run := *m.Run
	run.Program, run.Python, run.Inputs = filepath.Join(dir, name), python(t), nil
	if v.states {
		run.Arguments = slices.Concat([]string{"0"}, run.Arguments[1:])
	}
	m.Run = &run
	d, err := manifest.NewRunner(t.Context(), m, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := d.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Trim(identity.Version, "0.") != "" && change == nil {
		t.Errorf("version %s: want 0, so that nothing takes a stand-in for the real runtime", identity.Version)
	}
	return d
}

// subject is an example with stand-ins, and the sample to check it with.
func (v vendor) subject(t *testing.T, name string, change func(dir string)) *conformance.Subject {
	t.Helper()
	m := v.standing(t, name)
	compiler, profile := v.chained(t, m)
	driver := toolchain.Split(compiler, nil, v.runner(t, m, change))
	options, err := profile.CompileOptions(v.target, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	of := &conformance.Subject{Profile: profile, Options: options, CommandLine: true, Scratch: t.TempDir(), Validate: toolchaintest.ValidateSchema}
	of.New = fixed(driver)
	if err := of.UseSample(); err != nil {
		t.Fatal(err)
	}
	return of
}

// With stand-ins, runners of examples keep the promises of the protocol, as mlpromote toolchain check finds them out. Their
// engines are in the middle of each file of ONNX, so that outputs are of the model that was compiled.
func TestRunnersOfExamples(t *testing.T) {
	t.Parallel()
	rows := []string{"right", "order", "engines", "batches", "garbage engine", "unknown load option"}
	for name, v := range vendors() {
		if v.runs == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := v.subject(t, name, nil)
			for _, check := range conformance.Checks() {
				if !slices.Contains(rows, check.Name) {
					continue
				}
				err := check.Run(t.Context(), of)
				if _, skipped := errors.AsType[conformance.Skipped](err); skipped && check.Name == "batches" && name != "tensorrt" {
					continue // its engines have a batch of 1
				}
				if err != nil {
					t.Errorf("want that %s: %v", check.Promise, err)
				}
			}
		})
	}
}

// Each runner calls the packages of its vendor as recorded in conversation.json, which a person compared with the vendor's
// documentation: the same calls in the same order with the same arguments. A call that differs, or never comes, fails the job.
func TestConversations(t *testing.T) {
	t.Parallel()
	for name, v := range vendors() {
		if v.runs == "" {
			continue
		}
		recorded := standIns + "conversations/" + name + ".json"
		converse := func(t *testing.T, change func(dir string)) (map[string]tensor.Tensor, error) {
			t.Helper()
			return v.two(t, name, func(dir string) {
				text, err := os.ReadFile(recorded)
				if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "conversation.json"), text, 0o600)); err != nil {
					t.Fatal(err)
				}
				change(dir)
			})
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := converse(t, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			if y := got["y"]; !slices.Equal(y.Shape, []int64{2, 3}) {
				t.Errorf("outputs %v, want 2 of 3 numbers", y.Shape)
			}
		})
		t.Run(name+" with a mistake", func(t *testing.T) {
			t.Parallel()
			_, err := converse(t, func(dir string) {
				paths, _ := filepath.Glob(filepath.Join(dir, "run_*.py"))
				text, err := os.ReadFile(paths[0])
				if err != nil || !strings.Contains(string(text), v.wrong[0]) {
					t.Fatalf("%s does not have %q (%v)", paths[0], v.wrong[0], err)
				}
				if err := os.WriteFile(paths[0], []byte(strings.ReplaceAll(string(text), v.wrong[0], v.wrong[1])), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			if said := strings.Join(registry.Hints(err), "\n"); err == nil || !strings.Contains(said, "conversation.Wrong: ") && !strings.Contains(said, "the conversation ends after") {
				t.Errorf("with %q in place of %q: %v\n%s\nwant that the stand-ins refuse it", v.wrong[1], v.wrong[0], err, said)
			}
		})
	}
}

// two runs the engine of the sample on two cases.
func (v vendor) two(t *testing.T, name string, change func(dir string)) (map[string]tensor.Tensor, error) {
	t.Helper()
	of := v.subject(t, name, change)
	driver, err := of.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compile := toolchain.Job{Verb: toolchain.VerbCompile, Options: of.Options, Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", of.Model)}}
	engine, err := driver.Do(t.Context(), compile, filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	run := toolchain.Job{Verb: toolchain.VerbRun, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "e", Path: "e/" + of.Profile.Entry}}}}
	for _, f := range engine.Files {
		run.Inputs = append(run.Inputs, toolchaintest.Input(t, toolchain.RoleModel, "e/"+f.Name, f.Path))
	}
	cases, err := tensorfile.ReadFile(of.Cases, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x := cases["x"]
	x.Shape, x.Data = []int64{2, 4}, x.Data[:32]
	path := filepath.Join(t.TempDir(), "two.safetensors")
	f, err := os.Create(path)
	if err = errors.Join(err, tensorfile.Write(f, map[string]tensor.Tensor{"x": x}, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	run.Inputs = append(run.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "two.safetensors", path))
	outcome, err := driver.Do(t.Context(), run, filepath.Join(t.TempDir(), "out"))
	if err != nil {
		return nil, err
	}
	made, ok := outcome.File("outputs/e/two.safetensors")
	if !ok {
		t.Fatalf("it left %v", outcome.Files)
	}
	return tensorfile.ReadFile(made.Path, tensorfile.Limits{})
}

// fixed returns a driver each time.
func fixed(d toolchain.Driver) func(context.Context) (toolchain.Driver, error) {
	return func(context.Context) (toolchain.Driver, error) { return d, nil }
}

// Compilers of examples that are programs of ours call their packages as documented. onnx is real, and the packages stand-ins.
func TestCompilersOfExamples(t *testing.T) {
	t.Parallel()
	sample := &conformance.Subject{Scratch: t.TempDir()}
	if err := sample.UseSample(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		packages string
		args     []string // after the model; OUT is the folder for the engine
		version  []string
		made     string
	}{
		"epcontext.py with a provider": {"onnxruntime", []string{"OUT/model.onnx", "TensorrtExecutionProvider"}, []string{"--version"}, "model.onnx"},
		"epcontext.py with a plugin": {"onnxruntime", []string{"OUT/model.onnx", "QNNExecutionProvider", "onnxruntime_qnn", "backend_type=htp", "enable_htp_fp16_precision=1", "htp_arch=73", "soc_model=43"},
			[]string{"--version", "onnxruntime_qnn"}, "model.onnx"},
		"torch_tensorrt_program.py": {"torch-tensorrt", []string{"OUT"}, []string{"--version"}, "model.pt2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := t.TempDir(), t.TempDir()
			script, _, _ := strings.Cut(name, " ")
			copied(t, standIns+c.packages, dir)
			copied(t, standIns+"conversation.py", dir)
			copied(t, standIns+"network.py", dir)
			copied(t, "../../../examples/toolchains/compilers/"+script, dir)
			call := func(args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), python(t), append([]string{filepath.Join(dir, script)}, args...)...)
				cmd.Dir = t.TempDir()
				text, err := cmd.CombinedOutput()
				return string(text), err
			}
			if text, err := call(c.version...); err != nil || !strings.Contains(text, " 0.0.0") {
				t.Errorf("version %q (%v), want 0.0.0", text, err)
			}
			args := []string{sample.Model}
			for _, a := range c.args {
				args = append(args, strings.Replace(a, "OUT", out, 1))
			}
			text, err := call(args...)
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			engine, err := os.ReadFile(filepath.Join(out, c.made))
			if err != nil || !strings.Contains(string(engine), "of a stand-in") {
				t.Errorf("%s is %.100q, want that of a stand-in (%v)", c.made, engine, err)
			}
			if text, err := call(append(args, "surplus")...); err == nil {
				t.Errorf("with another argument: %s, want an error", text)
			}
		})
	}
}

// A model that the provider would have to compile when it loads it is refused, since the engine that was proven then would be another.
func TestRunnerRefusesToCompile(t *testing.T) {
	t.Parallel()
	v := vendors()["ort-tensorrt"]
	v.standIn = strings.Replace(v.standIn, "of a stand-in, not", "of a stand-in of a plain model, not", 1)
	_, err := v.two(t, "ort-tensorrt", nil)
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "would compile when it loads: Relu") {
		t.Errorf("error %v, want that it names the node", err)
	}
}

// So does the real ONNX Runtime, which has no such provider here: nothing falls back to the processor.
func TestRunnerWithoutItsProvider(t *testing.T) {
	t.Parallel()
	v := vendors()["ort-tensorrt"]
	_, err := v.two(t, "ort-tensorrt", func(dir string) {
		if err := os.Remove(filepath.Join(dir, "onnxruntime.py")); err != nil {
			t.Fatal(err)
		}
	})
	if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "this ONNX Runtime has no TensorrtExecutionProvider") {
		t.Errorf("error %v, want that the provider is not there", err)
	}
}
