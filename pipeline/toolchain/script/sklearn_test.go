package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// fitted writes files of estimators with the toolchain's own scikit-learn.
const fitted = `
import json, os, pickle, struct, sys
import joblib, numpy, skops.io
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

rows, labels = load_wine(return_X_y=True)
rows = rows.astype(numpy.float32)
boosted = HistGradientBoostingClassifier(max_iter=3, random_state=1).fit(rows, labels)
made = {
    "classes": make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels),
    "names": make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, numpy.array(["red", "rosé", "white"])[labels]),
    "ridge": Ridge().fit(rows, labels.astype(float)),
    "spreading": LabelSpreading().fit(rows, labels),
    "clusters": KMeans(3, random_state=1, n_init=1).fit(rows),
}
for name, estimator in made.items():
    skops.io.dump(estimator, name + ".skops")
gaussian = GaussianProcessRegressor().fit(rows, labels.astype(float))
joblib.dump(gaussian, "gaussian.pickle")

def shard(path, name, array):
    header = json.dumps({name: {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + array.astype("float32").tobytes())

shard("rows.safetensors", "input", rows[:20])
shard("gaussian.safetensors", "GPmean", numpy.array([gaussian.predict(row[None]) for row in rows[:20]], "float32"))
old = LogisticRegression(max_iter=9999).fit(rows, labels)
joblib.dump(boosted, "zipped.pickle", compress=3)

class Call:
    def __reduce__(self):
        return os.system, ("touch called",)

boosted.trap = Call()
joblib.dump(boosted, "joblib-trap.pickle", compress=3)
joblib.dump([numpy.array([Call()], dtype=object)], "array-trap.pickle")
with open("function.pickle", "wb") as f:
    f.write(b"csklearn.datasets._base\nload_files\n(V/\ntR.")
with open("attribute.pickle", "wb") as f:
    f.write(b"\x80\x04\x8c\x16sklearn.datasets._base\x8c\x09os.system\x93.")
state = old.__getstate__()
state["_sklearn_version"] = "1.2.0"
type(old).__getstate__ = lambda self: state
with open("old.pickle", "wb") as f:
    pickle.dump(old, f)
`

// estimators makes the files, and a driver that reads them.
func estimators(t *testing.T) (dir string, driver toolchain.Driver) {
	t.Helper()
	installer := toolchaintest.Installer(t, "scikit-learn")
	record, err := installer.Find("scikit-learn")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	program := filepath.Join(dir, "fitted.py")
	if err := os.WriteFile(program, []byte(fitted), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), record.Interpreter(), program)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, script.New(script.Installed(installer, "scikit-learn"), driverproc.Budget{})
}

// importJob is the import of a file, called as the pipeline calls it.
func importJob(t *testing.T, dir, file string, options map[string]any) toolchain.Job {
	t.Helper()
	return toolchain.Job{Verb: toolchain.VerbImport, Options: options, Inputs: []toolchain.Input{
		toolchaintest.Input(t, toolchain.RoleModel, "source"+filepath.Ext(file), filepath.Join(dir, file))}}
}

// Estimators of every kind become ONNX with outputs that can be compared, the same bytes
// in two processes. What is no estimator, or could run code, ends where it is met.
func TestImportScikitLearn(t *testing.T) {
	t.Parallel()
	dir, driver := estimators(t)
	const input = "float32[batch,13]"
	for file, outputs := range map[string]string{
		"classes.skops": "label int64[batch], probabilities float32[batch,3]", "names.skops": "probabilities float32[batch,3]",
		"ridge.skops":    "variable float32[batch,1]",
		"clusters.skops": "label int64[batch], scores float32[batch,3]",
		"zipped.pickle":  "label int64[batch], probabilities float32[batch,3]",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var digests []registry.Digest
			var model *onnx.Model
			for len(digests) < 2 && (len(digests) == 0 || file == "classes.skops") {
				outcome, err := driver.Do(t.Context(), importJob(t, dir, file, nil), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				made, ok := outcome.File("model.onnx")
				if !ok || len(outcome.Files) != 1 {
					t.Fatalf("files %v", outcome.Files)
				}
				digests, model = append(digests, made.Digest), open(t, made.Path)
			}
			if digests[0] != digests[len(digests)-1] {
				t.Errorf("two processes made %s", digests)
			}
			var got []string
			for _, o := range model.Outputs {
				got = append(got, o.Name+" "+o.String())
			}
			if strings.Join(got, ", ") != outputs || len(model.Inputs) != 1 || model.Inputs[0].String() != input {
				t.Errorf("inputs %v, outputs %s", model.Inputs, got)
			}
		})
	}
}

// A regressor whose converter has a name of its own for what it predicts is run, too.
func TestRunRegressors(t *testing.T) {
	t.Parallel()
	dir, driver := estimators(t)
	const file = "gaussian.pickle"
	job := toolchain.Job{Verb: toolchain.VerbRun, Inputs: []toolchain.Input{
		toolchaintest.Input(t, toolchain.RoleModel, "source.pickle", filepath.Join(dir, file)),
		toolchaintest.Input(t, toolchain.RoleCases, "cases.safetensors", filepath.Join(dir, "rows.safetensors")),
	}, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "engine", Path: "source.pickle"}}}}
	outcome, err := driver.Do(t.Context(), job, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made, _ := outcome.File("outputs/engine/cases.safetensors")
	near(t, file, readShard(t, made.Path), readShard(t, filepath.Join(dir, "gaussian.safetensors")), 1e-4) // the order of its sums depends on the number of threads
}

func TestImportScikitLearnRefuses(t *testing.T) {
	t.Parallel()
	dir, driver := estimators(t)
	for file, want := range map[string]struct {
		code registry.Code
		says string
	}{
		"joblib-trap.pickle": {registry.CodeUnsafe, "the pickle asks for posix.system"},
		"array-trap.pickle":  {registry.CodeUnsafe, "the pickle asks for posix.system"},
		"function.pickle":    {registry.CodeUnsafe, "the pickle asks for sklearn.datasets._base.load_files"},
		"attribute.pickle":   {registry.CodeUnsafe, "the pickle asks for sklearn.datasets._base.os.system"},
		"old.pickle":         {registry.CodeInvalid, "saved by scikit-learn 1.2.0, and this is 1.9.1"},
		"spreading.skops":    {registry.CodeInvalid, "it has no converter for sklearn.semi_supervised._label_propagation.LabelSpreading"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			_, err := driver.Do(t.Context(), importJob(t, dir, file, nil), t.TempDir())
			if registry.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
				t.Errorf("%v, want %s: %s", err, want.code, want.says)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "called")); err == nil {
		t.Error("a pickle called what it asked for")
	}
}
