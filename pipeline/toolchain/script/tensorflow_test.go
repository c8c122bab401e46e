package script_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// saved writes SavedModels and files of TensorFlow Lite with the toolchain's own TensorFlow.
const saved = `
import numpy, tensorflow as tf

class Model(tf.Module):
    def __init__(self, compute, shape):
        super().__init__()
        self.weight = tf.Variable(2.0)
        self.call = tf.function(lambda x: {"y": compute(x * self.weight)}, input_signature=[tf.TensorSpec(shape, tf.float32, "x")])

def save(folder, compute, shape, names=("serving_default",)):
    model = Model(compute, shape)
    tf.saved_model.save(model, folder, signatures=dict.fromkeys(names, model.call.get_concrete_function()))

def lite(file, folder, **settings):
    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    for name, value in settings.items():
        setattr(converter, name, value)
    with open(file, "wb") as f:
        f.write(converter.convert())

more = tf.lite.TargetSpec(supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS])
images = numpy.random.RandomState(1).random_sample((8, 1, 6, 6, 2)).astype(numpy.float32)
kernel = numpy.random.RandomState(2).random_sample((3, 3, 2, 4)).astype(numpy.float32) - 0.5
save("conv", lambda x: tf.nn.max_pool2d(tf.nn.conv2d(x, kernel, 1, "SAME"), 2, 2, "VALID"), [None, 6, 6, 2])
lite("int8.tflite", "conv", optimizations=[tf.lite.Optimize.DEFAULT], representative_dataset=lambda: ([i] for i in images))
save("gelu", lambda x: x * tf.math.erfc(-x), [None, 3])
save("loop", lambda x: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + x), (0, x))[1], [2, 3])
save("bessel", tf.math.bessel_i0, [None, 3])
save("reading", lambda x: x + tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32), [None])
lite("reading.tflite", "reading", target_spec=more)
save("several", tf.nn.relu, [None, 3], ("first", "second"))
`

// fromTensorFlow runs the program above, and gives its folder and a driver.
func fromTensorFlow(t *testing.T) (dir string, driver toolchain.Driver) {
	t.Helper()
	installer := toolchaintest.Installed(t, "tensorflow")
	record, err := installer.Find("tensorflow")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "saved.py"), []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), "saved.py")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, script.New(script.Installed(installer, "tensorflow"), driverproc.Budget{})
}

// savedJob is the import of a file or a folder, called as the pipeline calls it.
func savedJob(t *testing.T, dir, name string) toolchain.Job {
	t.Helper()
	if path.Ext(name) != "" {
		return importJob(t, dir, name, nil)
	}
	job := toolchain.Job{Verb: toolchain.VerbImport}
	folder := filepath.Join(dir, name)
	err := fs.WalkDir(os.DirFS(folder), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleModel, path.Join("source", file), filepath.Join(folder, file)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// What TensorFlow saves becomes ONNX with the names of its signature and a name for the
// batch, the same bytes in two processes; and what no ONNX stands for has a name. One
// after the other, since every process has all of TensorFlow in memory.
func TestImportTensorFlow(t *testing.T) {
	t.Parallel()
	dir, driver := fromTensorFlow(t)
	const conv = "x float32[batch,6,6,2] to y float32[batch,3,3,4]"
	for name, want := range map[string]string{
		"conv": conv, "int8.tflite": conv,
		"gelu": "x float32[batch,3] to y float32[batch,3]", "loop": "x float32[2,3] to y float32[2,3]",
	} {
		var digests []registry.Digest
		for len(digests) < 2 && (len(digests) == 0 || name == "int8.tflite") {
			outcome, err := driver.Do(t.Context(), savedJob(t, dir, name), t.TempDir())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			made, ok := outcome.File("model.onnx")
			if !ok || len(outcome.Files) != 1 {
				t.Fatalf("%s: files %v", name, outcome.Files)
			}
			model := open(t, made.Path)
			digests = append(digests, made.Digest)
			in, out := model.Inputs[0], model.Outputs[0]
			if got := in.Name + " " + in.String() + " to " + out.Name + " " + out.String(); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if digests[0] != digests[len(digests)-1] {
			t.Errorf("%s: two processes made %s", name, digests)
		}
	}
	for name, says := range map[string]string{
		"bessel": "tf2onnx has no ONNX for BesselI0", "reading.tflite": "tf2onnx has no ONNX for ReadFile, StringLength",
		"several": "the signatures first, second: want serving_default",
	} {
		_, err := driver.Do(t.Context(), savedJob(t, dir, name), t.TempDir())
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s: %s", name, err, registry.CodeInvalid, says)
		}
	}
}
