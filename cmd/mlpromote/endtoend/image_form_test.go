//go:build cgo

package endtoend

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	ggcrremote "github.com/google/go-containerregistry/pkg/v1/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// imageForm is the ref of the image form of the engine in prod.
func (p *plain) imageForm(t *testing.T) string {
	t.Helper()
	return p.must(t, "resolve", programtest.Model, "--env", "prod", "--as", "image")
}

// wantModels wants the files of the engine below models/ in a tar archive, and nothing else but folders.
func (p *plain) wantModels(t *testing.T, archive io.Reader) {
	t.Helper()
	left := len(p.stored)
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		data, err := io.ReadAll(r)
		want, ok := p.stored[strings.TrimPrefix(h.Name, "models/")]
		if err != nil || !ok || !bytes.Equal(data, want) || h.Mode != 0o644 {
			t.Errorf("%s has %d bytes and the mode %o, error %v, want the %d of the engine", h.Name, len(data), h.Mode, err, len(want))
		}
		left--
	}
	if left != 0 {
		t.Errorf("%d files of the engine are not in the image", left)
	}
}

// The library that most programs for images use pulls it for its platform, and finds the files of the engine in it.
func testImageForm(t *testing.T, p *plain) {
	ref, err := name.ParseReference(p.imageForm(t), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := ggcrremote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.OS != "linux" || config.Architecture != "amd64" || len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("config %+v, error %v", config, err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	p.wantModels(t, files)
}

// skopeo takes it as an image. CRI-O and Podman pull with its library.
func testImageFormSkopeo(t *testing.T, p *plain) {
	skopeo := newStock(t, "skopeo")
	ref := p.imageForm(t)
	var config ocispec.Image
	if err := json.Unmarshal([]byte(skopeo.must(t, "inspect", "--config", "--tls-verify=false", "docker://"+ref)), &config); err != nil ||
		config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("config %+v, error %v", config, err)
	}
	skopeo.must(t, "--insecure-policy", "copy", "--preserve-digests", "--src-tls-verify=false", "docker://"+ref, "oci:image:1")
	layer, err := os.Open(filepath.Join(skopeo.dir, "image", "blobs", "sha256", config.RootFS.DiffIDs[0].Encoded()))
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	p.wantModels(t, layer)
}

// cosign verifies the builder's signature about it, and the promoter's summary.
func testImageFormCosign(t *testing.T, p *plain) {
	cosign := newStock(t, "cosign")
	offline := []string{"--key", filepath.Join(p.Dir, "keys", "local.pub"), "--insecure-ignore-tlog", "--allow-http-registry"}
	ref := p.imageForm(t)
	cosign.must(t, append(append([]string{"verify"}, offline...), ref)...)
	cosign.must(t, append(append([]string{"verify-attestation", "--type", evidence.PredicateVSA}, offline...), ref)...)
}
