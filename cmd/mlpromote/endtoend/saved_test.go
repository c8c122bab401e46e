//go:build cgo && linux

package endtoend

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestOrasReadsSaved copies a release out of a file that save wrote, with its evidence, and pulls an engine.
func TestOrasReadsSaved(t *testing.T) {
	t.Parallel()
	oras := newStock(t, "oras")
	root := t.TempDir()
	j := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), programtest.Environment(root, programtest.Cache(t))...)
	j.Must("build")
	j.Must("verify")
	ref := strings.TrimSpace(j.Must("promote"))
	file := filepath.Join(oras.dir, "digits.tar")
	j.Must("save", ref, "-o", file)
	oras.must(t, "cp", "-r", "--from-oci-layout", file+":1.0.0", "--to-oci-layout", "copied:1.0.0")
	_, release, _ := strings.Cut(ref, "@")
	wantWords(t, "digest", oras.must(t, "resolve", "--oci-layout", "copied:1.0.0"), release)
	var discovered struct {
		Referrers []struct {
			ArtifactType string `json:"artifactType"`
		} `json:"referrers"`
	}
	out := oras.must(t, "discover", "--oci-layout", "copied:1.0.0", "--format", "json")
	if err := json.Unmarshal([]byte(out), &discovered); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range discovered.Referrers {
		kinds[r.ArtifactType]++
	}
	if kinds["application/vnd.mlpromote.saved.v1+json"] != 1 || kinds["application/vnd.dev.sigstore.bundle.v0.3+json"] == 0 {
		t.Errorf("referrers of the copied release: %v, want where it was saved and evidence", kinds)
	}
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal([]byte(oras.must(t, "manifest", "fetch", "--oci-layout", file+":1.0.0")), &index); err != nil {
		t.Fatal(err)
	}
	for _, m := range index.Manifests {
		if m.Annotations["dev.mlpromote.role"] == "engine" {
			oras.must(t, "pull", "--oci-layout", file+"@"+m.Digest, "-o", "engine")
		}
	}
	if found, err := filepath.Glob(filepath.Join(oras.dir, "engine", "model.onnx")); err != nil || len(found) != 1 {
		t.Errorf("oras pulled %v, error %v, want model.onnx", found, err)
	}
}
