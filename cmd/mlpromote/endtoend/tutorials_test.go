//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// tutorials are the pages that go from a training script to an engine, with the toolchain of the script's framework.
var tutorials = map[string]string{
	"dataframe": "scikit-learn", "timestamp": "lightgbm", "cnn": "scikit-learn", "encoder": "scikit-learn", "prices": "scikit-learn", "rare": "lightgbm",
}

// withMore are the tutorials that take pandas or safetensors, which no toolchain has.
var withMore = []string{"dataframe", "cnn"}

// runTutorial runs a page in an empty folder, with a Python that has the framework and ONNX Runtime.
func runTutorial(t *testing.T, program, page, framework string) {
	t.Helper()
	found, err := toolchaintest.Installed(t, framework).Find(framework)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := toolchaintest.Installer(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	packages := []string{packagesOf(t, found.Interpreter()), packagesOf(t, runtime.Interpreter())}
	if slices.Contains(withMore, page) {
		packages = append(packages, morePackages(t, packages[0]))
	}
	python := filepath.Join(t.TempDir(), "python")
	if out, err := exec.CommandContext(t.Context(), found.Interpreter(), "-m", "venv", "--without-pip", python).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths := filepath.Join(packagesOf(t, filepath.Join(python, "bin", "python3")), "tutorial.pth")
	if err := os.WriteFile(paths, []byte(strings.Join(packages, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writer, err := os.ReadFile(programtest.Root("ci", "python", "mlpromote_cases.py"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mlpromote_cases.py"), writer, 0o600); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + filepath.Join(python, "bin") + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH")
	runBlocks(t, program, "docs/tutorials/"+page+".md", "", dir, path)
}

// morePackages returns the folder with pandas and safetensors, for the Python that has the packages of a framework.
func morePackages(t *testing.T, framework string) string {
	t.Helper()
	environment := os.Getenv("MLPROMOTE_TUTORIALS")
	if environment == "" {
		t.Skip("MLPROMOTE_TUTORIALS names no environment with pandas and safetensors, as it does in make test")
	}
	more := packagesOf(t, filepath.Join(environment, "bin", "python3"))
	if version := filepath.Base(filepath.Dir(framework)); version != filepath.Base(filepath.Dir(more)) {
		t.Skipf("%s is not for %s, with which the toolchain was installed", environment, version)
	}
	return more
}

// packagesOf returns the folder in which the packages of an interpreter's environment lie.
func packagesOf(t *testing.T, interpreter string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(interpreter)), "lib", "python3*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s has the packages %v, error %v", interpreter, found, err)
	}
	return found[0]
}
