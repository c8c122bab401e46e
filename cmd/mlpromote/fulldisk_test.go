//go:build cgo && linux

package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// smallDisk makes a folder that is a disk of 8 MiB, or skips the test.
func smallDisk(t *testing.T, disk string) {
	t.Helper()
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small file system can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestFullDisk fills the disk under a service. What cannot be written is refused with a
// sentence, what is there stays and is read, and with room again the job goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "served")
	smallDisk(t, disk)
	c := &crash{t: t, program: fastProgram(t), dir: filepath.Join(root, "digits"), env: append(os.Environ(), environment(root, testCache(t))...)}
	server := &served{program: c.program, dir: disk, client: filepath.Join(root, "client"), env: environment(root, testCache(t))}
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Error(err)
		}
	})
	c.env = append(c.env, "MLPROMOTE_REGISTRY="+server.url, "MLPROMOTE_DATA="+server.client)
	err := errors.Join(copyTree(filepath.Join(disk, "keys"), filepath.Join(server.client, "keys")), copyTree(filepath.Join(examples, "digits"), c.dir), oneTarget(c.dir))
	if err != nil {
		t.Fatal(err)
	}
	c.bump()
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	staged, proven := c.head("staging"), c.head("prod")

	filler := fill(t, disk)
	refuses := func(verb ...string) {
		t.Helper()
		cmd := c.command(verb...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if cmd.ProcessState.ExitCode() != 1 || len(out) > 0 || !regexp.MustCompile(`mlpromote: error: .*(disk is full|no space is left)`).Match(stderr.Bytes()) {
			t.Errorf("%v on a full disk: %v\n%s%s", verb, err, out, stderr.Bytes())
		}
	}
	refuses("verify") // by REST
	c.bump()
	refuses("build") // by the OCI endpoint
	wantFull(t, server.url)
	c.must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(root, "pulled"))
	if c.head("staging") != staged || c.head("prod") != proven {
		t.Errorf("a head moved: staging %s, prod %s", c.head("staging"), c.head("prod"))
	}
	c.check(0, "a full disk")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"build", "verify", "promote"} {
		c.must(verb)
	}
	c.check(0, "room again")
	if c.head("prod") == proven {
		t.Error("the job did not go on")
	}
}

// wantFull pushes a blob as any client would.
func wantFull(t *testing.T, url string) {
	t.Helper()
	content := strings.Repeat("x", 1<<20)
	response, err := http.Post(url+"/v2/staging/vision/digits/blobs/uploads/?digest="+digest.FromString(content).String(), "application/octet-stream", strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusInsufficientStorage || !strings.Contains(string(body), `"DENIED","message":"the registry's disk is full: nothing was stored`) {
		t.Errorf("push to a full disk: status %d, %s (%v)", response.StatusCode, body, err)
	}
}

// fill takes all the room that a file system has, and gives the file that has it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// TestNoSpaceForBuild has less space than a build may take: it is refused before its first
// step, and nothing is left of it.
func TestNoSpaceForBuild(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	smallDisk(t, disk)
	if err := writeLargeModel(root, 16<<20); err != nil {
		t.Fatal(err)
	}
	spec := "model: large\nversion: 1.0.0\nsource: model.onnx\ncases: {generate: 1, seed: 1}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n"
	if err := os.WriteFile(filepath.Join(root, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &crash{t: t, program: fastProgram(t), dir: root, env: append(os.Environ(), environment(root, testCache(t))...)}
	c.env = append(c.env, "TMPDIR="+disk)
	cmd := c.command("build")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 || len(out) > 0 || !regexp.MustCompile(`error: the build may take \d+\.\d GiB, \d+\.\d GiB free in `+regexp.QuoteMeta(disk)+`: nothing was begun`).Match(stderr.Bytes()) {
		t.Errorf("build without space: %v\n%s%s", err, out, stderr.Bytes())
	}
	if bytes.Contains(stderr.Bytes(), []byte("run the reference")) {
		t.Errorf("a step was begun:\n%s", stderr.Bytes())
	}
}
