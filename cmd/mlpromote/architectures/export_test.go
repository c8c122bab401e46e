//go:build cgo && linux

package architectures

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// seed is that of all weights and inputs.
const seed = "1"

// exporter is a Python with torch, torchvision and transformers.
type exporter struct {
	python string
	of     string // digest of the script and of the packages
}

// newExporter makes an environment over Debian's python3-torch and python3-torchvision, with
// transformers by testdata/requirements.lock, in the folder if it is not there. Without torch it skips the test.
func newExporter(t *testing.T, folder string) exporter {
	t.Helper()
	const system = "/usr/bin/python3" // Debian's own, which its packages are for
	if out, err := exec.CommandContext(t.Context(), system, "-c", "import torch, torchvision").CombinedOutput(); err != nil {
		t.Skipf("no torch and torchvision for %s: on Debian, sh tools/setup.sh torch installs them\n%s", system, out)
	}
	script, err := os.ReadFile("testdata/export.py")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile("testdata/requirements.lock")
	if err != nil {
		t.Fatal(err)
	}
	e := exporter{of: fmt.Sprintf("%x", sha256.Sum256(append(script, lock...)))[:12]}
	venv := filepath.Join(folder, fmt.Sprintf("venv-%x", sha256.Sum256(lock))[:17])
	e.python = filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(filepath.Join(venv, "whole")); err == nil {
		return e
	}
	must(t, system, "-m", "venv", "--clear", "--system-site-packages", venv)
	must(t, e.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--ignore-installed",
		"--require-hashes", "--only-binary=:all:", "--no-deps", "--requirement", "testdata/requirements.lock")
	if err := os.WriteFile(filepath.Join(venv, "whole"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return e
}

// model exports an architecture, or finds what an earlier run exported, and gives its folder.
func (e exporter) model(t *testing.T, folder, architecture string) string {
	t.Helper()
	dir := filepath.Join(folder, e.of, architecture)
	if _, err := os.Stat(filepath.Join(dir, "about.json")); err != nil {
		must(t, e.python, "testdata/export.py", architecture, seed, dir)
	}
	return dir
}

func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
