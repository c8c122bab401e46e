//go:build cgo

package pipeline_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/diagnose"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// faultyCompiler damages a node of every model that it compiles.
type faultyCompiler struct {
	toolchain.Driver
	t           *testing.T
	interpreter string
	kind, node  string // empty damages nothing
}

func (d faultyCompiler) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if job.Verb != toolchain.VerbCompile || d.node == "" {
		return d.Driver.Do(ctx, job, outDir)
	}
	data, err := os.ReadFile(job.Inputs[0].Path)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	damaged := filepath.Join(d.t.TempDir(), "model.onnx")
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		return toolchain.Outcome{}, err
	}
	python(d.t, d.interpreter, "fault", d.kind, d.node, damaged)
	job.Inputs = slices.Clone(job.Inputs)
	job.Inputs[0], err = toolchain.FileInput(job.Inputs[0].Role, job.Inputs[0].Name, damaged)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	return d.Driver.Do(ctx, job, outDir)
}

func python(t *testing.T, interpreter string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), interpreter, append([]string{"testdata/layers.py"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("layers.py %s: %v\n%s", args, err, out)
	}
}

// layered is a world with a network of layers, whose compiler of a toolchain damages a node.
func layered(t *testing.T, tool, kind, node string) *world {
	t.Helper()
	onnx, err := toolchaintest.Installer(t, ort.Name).Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	w := setupReal(t, 0)
	python(t, onnx.Interpreter(), "make", filepath.Join(w.dir, "model.onnx"), filepath.Join(w.dir, "cases", "cases-00000.safetensors"))
	w.p.Toolchain = func(_ context.Context, name string) (run.Toolchain, error) {
		opened := programOf(t, name)
		if name == ort.Name {
			engines := ort.New(ort.Options{Installs: toolchaintest.Installer(t, ort.Name)})
			opened.Engines, opened.Timing = engines, engines
		}
		if name == tool {
			opened.Engines = faultyCompiler{opened.Engines, t, onnx.Interpreter(), kind, node}
		}
		return opened, nil
	}
	return w
}

// programOf is the drivers of an installed toolchain in Python.
func programOf(t *testing.T, name string) run.Toolchain {
	t.Helper()
	source, err := drivers.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var installer *install.Installer
	if name == ort.Name {
		installer = toolchaintest.Installer(t, name)
	} else {
		installer = toolchaintest.Installed(t, name)
	}
	program := script.New(script.Installed(installer, name), driverproc.Budget{})
	return run.Toolchain{Profile: source.Profile, Engines: program, Timing: program, Quantizer: program, Importer: program}
}

const layers = `model: text/layers
version: 1.0.0
source: model.onnx
cases: cases/
variants: [fp32]
targets: [TARGET]
limits: {preset: default}
`

// The node that a compiler damages is the one that is named, whether the runtime shows its inner tensors or the engine has
// to be compiled again for that.
func TestBisectNamesTheDamagedNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tool, kind, node string
		tensor                 string
	}{
		{"weights of a layer", ort.Name, "coarse", "dense2", "product2"},
		{"weights of the last layer", ort.Name, "coarse", "dense4", "y"},
		{"a normalization", ort.Name, "epsilon", "norm2", "normal2"},
		{"nothing", ort.Name, "", "", ""},
		{"weights of a layer, compiled again", "openvino", "coarse", "dense3", "product3"},
		{"a normalization, compiled again", "openvino", "epsilon", "norm1", "normal1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := layered(t, c.tool, c.kind, c.node)
			target := "linux/amd64/v1"
			if c.tool != ort.Name {
				// Without the option, OpenVINO takes bf16 on processors that have it, and every layer differs.
				target = "{name: other, cpu: {arch: amd64}, toolchain: " + c.tool + ", load: {options: {INFERENCE_PRECISION_HINT: f32}, required: true}}"
			}
			built := w.built(t, strings.Replace(layers, "TARGET", target, 1), build.Options{})
			found, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Cases: 5})
			if err != nil {
				t.Fatal(err)
			}
			if found.MadeAgain != (c.tool != ort.Name) {
				t.Errorf("made again is %t", found.MadeAgain)
			}
			if len(found.Cases) != 5 || len(found.Tensors) < 6 {
				t.Errorf("%d tensors on cases %v, want most of 10 on 5", len(found.Tensors), found.Cases)
			}
			for _, o := range found.Outputs {
				if o.Differs() {
					t.Errorf("output %s has %v dB, and %v with inner tensors as outputs: want the same", o.Name, o.SNRdB, o.InnerSNRdB)
				}
			}
			if c.node == "" {
				if !found.WithinLimit {
					t.Errorf("an engine without a fault is not within its limits: %+v", found.Outputs)
				}
				return
			}
			if found.First == nil {
				t.Fatalf("found nothing in %+v", found.Tensors)
			}
			if found.WithinLimit || !found.First.Sharp {
				t.Errorf("within the limit %t, sharp %t: want a failure that begins here: %+v", found.WithinLimit, found.First.Sharp, found.First)
			}
			if last := found.First.Nodes[len(found.First.Nodes)-1]; found.First.Name != c.tensor || last.Node != c.node || len(found.First.Nodes) != 1 {
				t.Errorf("first is %s of %+v, want %s of %s alone", found.First.Name, found.First.Nodes, c.tensor, c.node)
			}
		})
	}
}

// What each layer costs is measured in the order of the graph, and of int8 engines only.
func TestBisectLayers(t *testing.T) {
	t.Parallel()
	w := layered(t, "", "", "")
	built := w.built(t, strings.Replace(strings.Replace(layers, "TARGET", "linux/amd64/v1", 1), "[fp32]",
		"[fp32, {name: int8, quantize: {method: dynamic}}]", 1), build.Options{})
	if _, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("two engines and none named: error %v, want CodeInvalid", err)
	}
	if _, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Engine: "int4"}); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("an engine that is not there: error %v, want CodeNotFound", err)
	}
	if _, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Engine: "fp32",
		Layers: time.Hour}); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("layers of fp32: error %v, want CodeInvalid", err)
	}
	found, err := diagnose.Bisect(t.Context(), w.p, built.Ref, diagnose.BisectOptions{Engine: "int8", Layers: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range found.Layers.Nodes {
		nodes = append(nodes, n.Node)
		if n.Alone == nil || n.Cumulative == nil || n.Without == nil {
			t.Errorf("%s lacks figures: %+v", n.Node, n)
		}
	}
	if want := []string{"dense1", "dense2", "dense3", "dense4"}; !slices.Equal(nodes, want) || found.Layers.Unfinished {
		t.Fatalf("layers %q, unfinished %t; want %q", nodes, found.Layers.Unfinished, want)
	}
	last := found.Layers.Nodes[3]
	if *last.Cumulative != found.Layers.SNRdB {
		t.Errorf("with all layers up to the last %v dB, want %v as with all", *last.Cumulative, found.Layers.SNRdB)
	}
	if *found.Layers.Nodes[0].Cumulative != *found.Layers.Nodes[0].Alone {
		t.Errorf("the first layer alone has %v dB and %v with all before it, want the same", *found.Layers.Nodes[0].Alone,
			*found.Layers.Nodes[0].Cumulative)
	}
}
