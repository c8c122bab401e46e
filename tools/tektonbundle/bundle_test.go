package main

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const task = "../../ci/tekton/mlpromote.yaml"

// A bundle is read back from a registry as Tekton's resolver does: the layer by its annotations, and the first file in it.
func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	to := strings.TrimPrefix(server.URL, "http://") + "/tekton/mlpromote:1.0.0"
	pushed, err := push(task, to)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := push(task, to); err != nil || again != pushed {
		t.Errorf("pushed again as %s (error %v), want %s", again, err, pushed)
	}
	ref, err := name.NewDigest(pushed)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"dev.tekton.image.name": "mlpromote", "dev.tekton.image.kind": "task", "dev.tekton.image.apiVersion": "tekton.dev/v1"}
	if len(manifest.Layers) != 1 || !cmp.Equal(manifest.Layers[0].Annotations, want) {
		t.Fatalf("got the layers %+v, want one with %v", manifest.Layers, want)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(content)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(task); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the layer has %d bytes, want the file (error %v)", len(got), err)
	}
}

func TestPushRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no resource": "a: 1\n", "no YAML": "\t{", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "file.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if pushed, err := push(file, "127.0.0.1:1/x:1"); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("pushed as %s with error %v, want one that names the file", pushed, err)
			}
		})
	}
}
