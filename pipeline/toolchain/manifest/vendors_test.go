package manifest_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// vendor is a compiler that this project cannot have. standIn takes its place: a program that refuses
// all arguments but those that the manifest of the example must give it.
type vendor struct {
	program string            // where it lies in the folder of the tool
	script  string            // a program of examples/toolchains/compilers in that place, which calls the stand-in; empty: it is the stand-in itself
	standIn string            // without its first line
	beside  map[string]string // other files of the tool
	first   string            // what the toolchain that compiles first leaves; empty for a compiler of ONNX
	names   string            // what it leaves as model.json; empty: nothing
	runs    string            // folder of stand-ins for the packages of its runner, in testdata/vendors; empty: it has no runner
	states  bool              // the first argument of its runner is a version
	wrong   [2]string         // what a mistake in its runner changes: the stand-ins notice it
	target  artifact.Target
	version string
	files   []string
}

func vendors() map[string]vendor {
	card := func(vendor, arch, product string) artifact.Target {
		return artifact.Target{Name: "card", Accelerator: &artifact.TargetAccelerator{Vendor: vendor, Arch: arch, Product: product}}
	}
	return map[string]vendor{
		"glow": {
			program: "model-compiler", version: "2022.05.19", files: []string{"model.h", "model.o", "model.weights.bin"},
			target: artifact.Target{Name: "x86", CPU: artifact.TargetCPU{Arch: "amd64"}},
			standIn: `[ "$*" = -version ] && { echo "Glow Tools version: 2022-05-19 (2ee55ec50) ()"; exit; }
model=${2#-model=} out=${3#-emit-bundle=}
[ "$*" = "-backend=CPU -model=$model -emit-bundle=$out -network-name=model -target=x86_64" ] || exit 64
case $model in *.onnx) ;; *) exit 65 ;; esac
for name in o h weights.bin weights.txt; do { echo "of a stand-in, not of Glow"; cat "$model"; } > "$out/model.$name"; done
`},
		"neuron": {
			program: "bin/neuron-neff", script: "neuron-neff", version: "2.25.3371.0", files: []string{"model.neff", "names.json"}, target: card("aws", "trn1", ""),
			first: "model.hlo.pb", names: `{"inputs": [{"name": "x", "dtype": "float32", "shape": [1, 4]}], "outputs": [{"name": "y", "dtype": "float32", "shape": [1, 3]}]}`,
			runs: "neuron", states: true, wrong: [2]string{"name=self.given[name])", "name=name, core_id=1)"},
			beside: map[string]string{"bin/neuronx-cc": `#!/bin/sh
[ "$*" = --version ] && { printf 'NeuronX Compiler version 2.25.3371.0+f524f7f8\n\nPython version 3.12.13\n' >&2; exit; }
[ "$*" = "compile $2 --framework XLA --target trn1 --output $8" ] || exit 64
case $2 in *.hlo.pb) ;; *) exit 65 ;; esac
echo "log of a stand-in" > log-neuron-cc.txt
{ echo "of a stand-in, not of AWS Neuron"; cat "$2"; } > "$8"
`}},
		"edgetpu": {
			program: "edgetpu_compiler", version: "16.0.384591198", files: []string{"model_edgetpu.tflite"}, first: "model.tflite", target: card("google", "", ""),
			beside: map[string]string{"edgetpu_compiler_bin/edgetpu_compiler": "stand-in"},
			runs:   "edgetpu", states: true, wrong: [2]string{"self.interpreter.allocate_tensors()", "pass"},
			standIn: `[ "$*" = --version ] && { echo "Edge TPU Compiler version 16.0.384591198"; exit; }
[ "$*" = "--out_dir $2 $3" ] || exit 64
name=$(basename "$3" .tflite)
echo "log of a stand-in" > "$2/${name}_edgetpu.log"
{ echo "of a stand-in, not of the Edge TPU Compiler: edgetpu-custom-op"; cat "$3"; } > "$2/${name}_edgetpu.tflite"
`},
		"vitis-ai": {
			program: "conda/envs/vitis-ai-pytorch/bin/vai_c_xir", version: "3.5", files: []string{"model.xmodel"}, first: "model.xmodel",
			runs: "vitis-ai", states: true, wrong: [2]string{"numpy.int8", "numpy.float32"},
			target: card("amd", "DPUCZDX8G", "KV260"), beside: map[string]string{"compiler/arch/DPUCZDX8G/KV260/arch.json": "{}"},
			standIn: `[ "$*" = "-x $2 -a /opt/vitis_ai/compiler/arch/DPUCZDX8G/KV260/arch.json -o $6 -n model" ] || exit 64
for name in model_org.xmodel model.xmodel meta.json md5sum.txt; do { echo "of a stand-in, not of Vitis AI"; cat "$2"; } > "$6/$name"; done
`},
		"tensorrt": {
			runs: "tensorrt", wrong: [2]string{"checked(cuda.cudaStreamSynchronize(self.stream))", "pass"},
			program: "trtexec", version: "100100", files: []string{"model.plan", "tuning/timing.cache"}, target: card("nvidia", "sm_80", "A100"),
			standIn: `[ "$*" = --help ] && { echo "&&&& RUNNING TensorRT.trtexec [TensorRT v100100] # trtexec --help"; exit; }
model=${1#--onnx=} plan=${2#--saveEngine=} cache=${5#--timingCacheFile=}
[ "$*" = "--onnx=$model --saveEngine=$plan --skipInference --noTF32 --timingCacheFile=$cache" ] || exit 64
echo "of a stand-in" > "$cache"
{ echo "of a stand-in, not of TensorRT"; cat "$model"; } > "$plan"
`},
		"torch-tensorrt": {
			program: "bin/torch_tensorrt_program.py", version: "0.0.0", files: []string{"model.json", "model.pt2"}, target: card("nvidia", "sm_80", "A100"),
			runs: "torch-tensorrt", wrong: [2]string{`.to("cuda")`, ""},
			beside: packages("torch_tensorrt", "onnx2torch"),
			standIn: `[ "$*" = --version ] && { echo "torch_tensorrt 0.0.0+standin"; exit; }
[ "$*" = "$1 $2" ] || exit 64
case $1 in *.onnx) ;; *) exit 65 ;; esac
echo '{"inputs": [{"name": "x", "dtype": "float32", "shape": [1, 4]}], "outputs": ["y"]}' > "$2/model.json"
{ echo "of a stand-in, not of Torch-TensorRT"; cat "$1"; } > "$2/model.pt2"
`},
		"ort-tensorrt": {
			program: "bin/epcontext.py", version: "0.0.0", files: []string{"model.onnx"}, target: card("nvidia", "sm_80", "A100"),
			runs: "onnxruntime", wrong: [2]string{"enable_fallback=0", "enable_fallback=1"},
			beside: packages("onnxruntime"),
			standIn: `[ "$*" = --version ] && { echo "epcontext 0.0.0"; exit; }
[ "$*" = "$1 $2 TensorrtExecutionProvider" ] || exit 64
{ echo "of a stand-in, not of TensorRT's provider"; cat "$1"; } > "$2"
`},
		"qnn": {
			program: "bin/epcontext.py", version: "0.0.0", files: []string{"model.onnx"}, target: card("qualcomm", "v73", "SM8550"),
			runs: "onnxruntime", wrong: [2]string{`"session.disable_cpu_ep_fallback", "1"`, `"session.disable_cpu_ep_fallback", "0"`},
			beside: packages("onnxruntime", "onnxruntime_qnn", "onnx"),
			standIn: `[ "$*" = "--version onnxruntime_qnn" ] && { echo "epcontext 0.0.0"; exit; }
[ "$*" = "$1 $2 QNNExecutionProvider onnxruntime_qnn backend_type=htp enable_htp_fp16_precision=1 htp_arch=73 soc_model=43" ] || exit 64
{ echo "of a stand-in, not of QNN's provider"; cat "$1"; } > "$2"
`},
	}
}

// packages are files of packages of Python in the folder of a tool.
func packages(names ...string) map[string]string {
	files := make(map[string]string)
	for _, name := range names {
		files["lib/python3.12/site-packages/"+name+"/__init__.py"] = ""
	}
	return files
}

// standing is the manifest of an example, for the stand-in of its tool.
func (v vendor) standing(t *testing.T, name string) manifest.Manifest {
	t.Helper()
	m, err := manifest.Load("../../../examples/toolchains/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{v.program: "#!/bin/sh\n" + v.standIn}
	if v.script != "" {
		text, err := os.ReadFile("../../../examples/toolchains/compilers/" + v.script)
		if err != nil {
			t.Fatal(err)
		}
		files[v.program] = string(text)
	}
	for name, text := range v.beside {
		files[name] = text
	}
	dir := tool(t, files)
	m.Executable = filepath.Join(dir, filepath.FromSlash(v.program))
	if m.Folder != "" {
		m.Folder = dir
	}
	return m
}

// chained is the driver and the profile of a manifest, behind a compiler that leaves the file that it takes.
func (v vendor) chained(t *testing.T, m manifest.Manifest) (toolchain.Driver, toolchain.Profile) {
	t.Helper()
	d, identity := open(t, m)
	if identity.Version != v.version {
		t.Errorf("version %s, want %s", identity.Version, v.version)
	}
	if v.first == "" {
		return d, m.Profile()
	}
	if m.Compile.From == nil {
		t.Fatal("the manifest has no from")
	}
	before := describe(t, tool(t, map[string]string{"acc": `#!/bin/sh
[ "$1" = --version ] && { echo "acc 2.1"; exit; }
{ echo made of; cat "$1"; } > "$3"
[ -z '` + v.names + `' ] || echo '` + v.names + `' > "$(dirname "$3")/model.json"
`}), "")
	before.Engine.Entry, before.Engine.Outputs = v.first, []string{v.first}
	if v.names != "" {
		before.Engine.Outputs = append(before.Engine.Outputs, "model.json")
	}
	before.Compile.Arguments = []string{"{model}", "-o", "{out}/" + v.first}
	first, by := open(t, before)
	profile, err := m.Profile().After(before.Profile(), "", by)
	if err != nil {
		t.Fatal(err)
	}
	return toolchain.Chain(first, d), profile
}

// compile has a driver compile a model for the target of the vendor.
func (v vendor) compile(t *testing.T, d toolchain.Driver, p toolchain.Profile) (toolchain.Outcome, error) {
	t.Helper()
	options, err := p.CompileOptions(v.target, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	j := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: onnx(t), Options: options}
	return d.Do(t.Context(), j, filepath.Join(t.TempDir(), "out"))
}

// Every example calls its vendor's tool as documented: a program that refuses all else takes the
// model, and what it leaves is the engine.
func TestExamplesRunTheirTools(t *testing.T) {
	t.Parallel()
	known := vendors()
	examples, err := filepath.Glob("../../../examples/toolchains/*.yaml")
	if err != nil || len(examples) != len(known) {
		t.Errorf("%d examples, and %d stand-ins (%v)", len(examples), len(known), err)
	}
	for name, v := range known {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := v.standing(t, name)
			d, profile := v.chained(t, m)
			if gpu := v.target.Accelerator != nil && v.target.Accelerator.Vendor == "nvidia"; profile.NeedsDevice != gpu {
				t.Errorf("its compiler needs the accelerator: %t, want %t", profile.NeedsDevice, gpu)
			}
			outcome, err := v.compile(t, d, profile)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range outcome.Files {
				names = append(names, f.Name)
			}
			if !slices.Equal(names, v.files) {
				t.Errorf("files %v, want %v", names, v.files)
			}
			entry, _ := outcome.File(m.Engine.Entry)
			text, err := os.ReadFile(entry.Path)
			if want := map[bool]string{false: "", true: "made of\n"}[v.first != ""] + "model"; err != nil ||
				!strings.HasPrefix(string(text), "of a stand-in") || !strings.HasSuffix(string(text), "\n"+want) {
				t.Errorf("%s is %q, want that of a stand-in, of %q (%v)", path.Base(entry.Path), text, want, err)
			}

			m.Compile.Arguments = append(slices.Clone(m.Compile.Arguments), "--surplus")
			d, profile = v.chained(t, m)
			if _, err := v.compile(t, d, profile); err == nil || !strings.Contains(err.Error(), "exit status 64") {
				t.Errorf("with a wrong argument: %v, want that the stand-in refuses it", err)
			}
		})
	}
}
