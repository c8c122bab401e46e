//go:build linux

package kubernetes

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// download is what the storage initializer of KServe does with the URI of a model.
const download = `import sys
from kserve_storage.kserve_storage import Storage
Storage.download(sys.argv[1], sys.argv[2])
`

// KServe's own code downloads the image form of an engine, and refuses the engine.
func TestKServe(t *testing.T) {
	t.Parallel()
	c := start(t)
	python := os.Getenv("MLPROMOTE_KSERVE_PYTHON")
	if python == "" {
		t.Fatal("MLPROMOTE_KSERVE_PYTHON names no Python with kserve-storage: make interop-kubernetes installs one")
	}
	s := c.serve()
	j := s.job(t)
	j.Release()
	j.Must("pull", programtest.Model, "--env", "prod", "-o", "pulled")

	// What KServe's webhook mounts for a registry with its own CA and a token.
	token := j.Must("token", "create", "kserve", "--allow", "read", "--env", "prod", "--model", programtest.Model)
	login := `{"auths": {"` + s.Host() + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("token:"+token)) + `"}}}`
	ca, err := os.ReadFile(s.path("tls", "ca.pem"))
	err = errors.Join(err, os.WriteFile(s.path("cabundle.crt"), ca, 0o600), os.WriteFile(s.path("config.json"), []byte(login), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(ref, dir string) (string, error) {
		cmd := exec.Command(python, "-c", download, "oci://"+ref, dir)
		cmd.Env = append(os.Environ(), "CA_BUNDLE_VOLUME_MOUNT_POINT="+s.path(), "KSERVE_OCI_DOCKER_CONFIG="+s.path("config.json"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	dir := t.TempDir()
	if out, err := fetch(j.Must("resolve", programtest.Model, "--env", "prod", "--as", "image"), dir); err != nil {
		t.Fatalf("the image form: %v\n%s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(dir, "model.onnx"))
	want, other := os.ReadFile(filepath.Join(j.Dir, "pulled", "model.onnx"))
	if err := errors.Join(err, other); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, error %v, want the %d of the engine", len(got), err, len(want))
	}
	if out, err := fetch(j.Must("resolve", programtest.Model, "--env", "prod"), t.TempDir()); err == nil || !strings.Contains(out, "/models/") {
		t.Errorf("the engine itself: %v, want a refusal for its layers\n%s", err, out)
	}
}
