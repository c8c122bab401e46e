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
	standIn string            // without its first line
	beside  map[string]string // other files of the tool
	first   string            // what the toolchain that compiles first leaves; empty for a compiler of ONNX
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
			program: "bin/neuronx-cc", version: "2.25.3371.0", files: []string{"model.neff"}, first: "model.hlo.pb", target: card("aws", "trn1", ""),
			standIn: `[ "$*" = --version ] && { printf 'NeuronX Compiler version 2.25.3371.0+f524f7f8\n\nPython version 3.12.13\n' >&2; exit; }
[ "$*" = "compile $2 --framework XLA --target trn1 --output $8" ] || exit 64
case $2 in *.hlo.pb) ;; *) exit 65 ;; esac
echo "log of a stand-in" > log-neuron-cc.txt
{ echo "of a stand-in, not of AWS Neuron"; cat "$2"; } > "$8"
`},
		"edgetpu": {
			program: "edgetpu_compiler", version: "16.0.384591198", files: []string{"model_edgetpu.tflite"}, first: "model.tflite", target: card("google", "", ""),
			beside: map[string]string{"edgetpu_compiler_bin/edgetpu_compiler": "stand-in"},
			standIn: `[ "$*" = --version ] && { echo "Edge TPU Compiler version 16.0.384591198"; exit; }
[ "$*" = "--out_dir $2 $3" ] || exit 64
name=$(basename "$3" .tflite)
echo "log of a stand-in" > "$2/${name}_edgetpu.log"
{ echo "of a stand-in, not of the Edge TPU Compiler"; cat "$3"; } > "$2/${name}_edgetpu.tflite"
`},
		"vitis-ai": {
			program: "conda/envs/vitis-ai-pytorch/bin/vai_c_xir", version: "3.5", files: []string{"model.xmodel"}, first: "model.xmodel",
			target: card("amd", "DPUCZDX8G", "KV260"), beside: map[string]string{"compiler/arch/DPUCZDX8G/KV260/arch.json": "{}"},
			standIn: `[ "$*" = "-x $2 -a /opt/vitis_ai/compiler/arch/DPUCZDX8G/KV260/arch.json -o $6 -n model" ] || exit 64
for name in model_org.xmodel model.xmodel meta.json md5sum.txt; do { echo "of a stand-in, not of Vitis AI"; cat "$2"; } > "$6/$name"; done
`},
		"tensorrt": {
			program: "trtexec", version: "100100", files: []string{"model.plan", "tuning/timing.cache"}, target: card("nvidia", "sm_80", "A100"),
			standIn: `[ "$*" = --help ] && { echo "&&&& RUNNING TensorRT.trtexec [TensorRT v100100] # trtexec --help"; exit; }
model=${1#--onnx=} plan=${2#--saveEngine=} cache=${4#--timingCacheFile=}
[ "$*" = "--onnx=$model --saveEngine=$plan --skipInference --timingCacheFile=$cache" ] || exit 64
echo "of a stand-in" > "$cache"
{ echo "of a stand-in, not of TensorRT"; cat "$model"; } > "$plan"
`},
	}
}

// standing is the manifest of an example, for the stand-in of its tool.
func (v vendor) standing(t *testing.T, name string) manifest.Manifest {
	t.Helper()
	m, err := manifest.Load("../../../examples/toolchains/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{v.program: "#!/bin/sh\n" + v.standIn}
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
`}), "")
	before.Engine.Entry, before.Engine.Outputs = v.first, []string{v.first}
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
