//go:build cgo && linux

package endtoend

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// TestToolchainImage builds and verifies with a toolchain in a container image, which is
// made of the install of that toolchain and of libraries of this machine.
func TestToolchainImage(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "openvino").Find("openvino")
	if err != nil {
		t.Fatal(err)
	}
	target := func(image string) string {
		return "cases: {generate: 3, seed: 1}\ntargets: [{name: x86, os: linux, cpu: {arch: amd64, level: v1}, toolchain: {name: openvino, image: \"" + image + "\"}}]\n"
	}
	l := newLarge(t, 1, target(imageReference))
	l.env = []string{"PATH=" + l.path("empty")}
	if out, err := l.verb(t, "build"); err == nil || !strings.Contains(out, "this machine has neither podman nor docker") {
		t.Errorf("without podman and docker: %v\n%s", err, out)
	}
	bin := podman(t)
	digest := importImage(t, bin, record)
	l.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	out, err := l.verb(t, "build", "--output", "json")
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if !strings.Contains(out, `"lock": "`+digest+`"`) {
		t.Errorf("the engine's toolchain does not have the digest %s of the image:\n%s", digest, out)
	}
	out, err = l.verb(t, "verify", "--image", "openvino="+digest, "--verbose")
	if err != nil || !strings.Contains(out, "openvino: sandbox container: inputs read-only, no other files, no network") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	provenance, err := l.verb(t, "inspect", "--output", "json")
	if err != nil || !strings.Contains(provenance, digest) {
		t.Errorf("inspect: %v\n%s", err, provenance)
	}
	spec := "model: large\nversion: 2.0.0\nsource: model.onnx\nvariants: [fp32]\n" + target("localhost/nobody/has:1")
	if err := os.WriteFile(filepath.Join(l.model, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := l.verb(t, "build"); err == nil || !strings.Contains(out, "podman pull localhost/nobody/has:1") {
		t.Errorf("with an image that is not here: %v\n%s", err, out)
	}
}

const imageReference = "localhost/mlpromote-test:1"

// podman gives a folder with a podman that keeps everything in a folder of the test. Where
// podman finds the groups of both versions of cgroups, it is shown those of the first alone.
func podman(t *testing.T) string {
	t.Helper()
	installed, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("podman is not installed")
	}
	bin, store := t.TempDir(), t.TempDir()
	t.Cleanup(func() { _ = exec.Command(filepath.Join(bin, "podman"), "system", "reset", "--force").Run() })
	run := installed + " --root " + store + "/root --runroot " + store + "/run --cgroup-manager cgroupfs"
	script := "#!/bin/sh\n" +
		"[ \"$1\" = run ] && { shift; set -- run --cgroups=disabled \"$@\"; }\n" +
		"[ -d /sys/fs/cgroup/unified ] || exec " + run + " \"$@\"\n" +
		"exec unshare -m sh -c 'umount /sys/fs/cgroup/unified && exec " + run + " \"$@\"' podman \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "podman"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin
}

// importImage makes the image and gives its digest. It skips the test where no container
// runs here.
func importImage(t *testing.T, bin string, record install.Record) string {
	t.Helper()
	program := filepath.Join(bin, "podman")
	r, w := io.Pipe()
	go func() { w.CloseWithError(programtest.WritePython(w, record.Interpreter(), "openvino*", "numpy*")) }()
	load := exec.CommandContext(t.Context(), program, "import", "--change", "ENV PATH=/opt/python/bin:/usr/bin:/bin", "-", imageReference)
	load.Stdin = r
	if out, err := load.CombinedOutput(); err != nil {
		t.Skipf("podman cannot import an image here: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", imageReference, "python3", "-c", "import openvino").CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) && (exit.ExitCode() == 125 || exit.ExitCode() == 126) {
		t.Skipf("podman cannot run a container here: %v: %s", err, out)
	}
	if err != nil {
		t.Fatalf("the image does not work: %v: %s", err, out)
	}
	id, err := exec.CommandContext(t.Context(), program, "image", "inspect", "--format", "{{.Id}}", imageReference).Output()
	if err != nil {
		t.Fatal(err)
	}
	return "sha256:" + strings.TrimSpace(string(id))
}
