//go:build cgo

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// TestReadmeNode runs what the README tells a scheduler to type, as it stands there. Where
// there is no oras, its part is done by the library that it is made of.
func TestReadmeNode(t *testing.T) {
	t.Parallel()
	base, r := network(t, onDisk(t), everybody(t))
	release := r.Promoted(t, registrytest.Build{Model: "vision/digits"})
	if err := r.Interface.(*client.Client).NodeTypes().Put(t.Context(), "g6.xlarge", registrytest.Node("v3")); err != nil {
		t.Fatal(err)
	}
	var right registry.Digest
	for _, e := range release.Engines {
		if e.Label() == "linux-amd64-v3/int8" {
			right = e.Digest
		}
	}
	// oras speaks plain HTTP to localhost alone, as to a service behind no proxy.
	url := strings.Replace(base, "127.0.0.1", "localhost", 1)
	for _, b := range programtest.Blocks(t, "README.md", "node") {
		dir := t.TempDir()
		script := b.Text
		_, missing := exec.LookPath("oras")
		if missing != nil {
			t.Logf("README.md:%d: there is no oras in PATH: its library pulls", b.Line)
			script = "oras() { echo \"$2\"; }\n" + script
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "URL="+url, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("README.md:%d: %v\n%s\n%s", b.Line, err, script, out)
		}
		if missing != nil {
			pullByLibrary(t, strings.TrimSpace(string(out)), filepath.Join(dir, "DIR"))
		}
		files, err := os.ReadDir(filepath.Join(dir, "DIR"))
		if err != nil || len(files) == 0 || !strings.Contains(string(out), string(right)) {
			t.Errorf("README.md:%d: pulled are %v (error %v), want those of %s\n%s", b.Line, files, err, right, out)
		}
	}
}

func pullByLibrary(t *testing.T, reference, dir string) {
	t.Helper()
	name, digest, ok := strings.Cut(reference, "@")
	if !ok {
		t.Fatalf("%q is no reference by digest", reference)
	}
	repo, err := remote.NewRepository(name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	folder, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = oras.Copy(t.Context(), repo, digest, folder, digest, oras.DefaultCopyOptions)
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
}
