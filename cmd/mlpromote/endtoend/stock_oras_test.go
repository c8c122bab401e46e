//go:build cgo

package endtoend

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

// oras is what nodes pull engines with.
func TestOras(t *testing.T) {
	t.Parallel()
	program := newStock(t, "oras")
	s := serveEmpty(t)
	host := s.Host()
	model := random(200_000)
	program.writeFile(t, "model.onnx", model)
	program.writeFile(t, "report.json", []byte(`{"pass":true}`))
	artifact := host + "/staging/oras/model"
	program.must(t, "push", "--plain-http", artifact+":1,latest", "--artifact-type", "application/vnd.model", "model.onnx:application/octet-stream")
	program.must(t, "attach", "--plain-http", artifact+":1", "--artifact-type", "application/vnd.report", "-a", "kind=parity", "report.json")
	d := program.must(t, "resolve", "--plain-http", artifact+":1")
	for name, test := range map[string]func(*testing.T){
		"pull": func(t *testing.T) {
			program.must(t, "pull", "--plain-http", artifact+":1", "-o", "pulled")
			if got, err := os.ReadFile(filepath.Join(program.dir, "pulled", "model.onnx")); err != nil || !bytes.Equal(got, model) {
				t.Errorf("the model has %d bytes, error %v", len(got), err)
			}
		},
		"discover": func(t *testing.T) {
			program.wantReferrers(t, artifact+":1", 1)
			program.wantReferrers(t, artifact+":1", 0, "--artifact-type", "application/vnd.other")
			wantWords(t, "tags, none of which stands for referrers", program.must(t, "repo", "tags", "--plain-http", artifact), "1", "latest")
		},
		"copy with referrers, by mounts": func(t *testing.T) {
			out := program.must(t, "cp", "-r", "--from-plain-http", "--to-plain-http", artifact+":1", host+"/staging/oras/copy:1")
			if strings.Count(out, "Mounted ") != 3 {
				t.Errorf("want the config, the model and the report mounted: %s", out)
			}
			program.wantReferrers(t, host+"/staging/oras/copy:1", 1)
		},
		"through an OCI layout": func(t *testing.T) {
			program.must(t, "cp", "-r", "--from-plain-http", "--to-oci-layout", artifact+":1", "layout:1")
			program.must(t, "cp", "-r", "--from-oci-layout", "layout:1", "--to-plain-http", host+"/staging/oras/again:1")
			program.wantReferrers(t, host+"/staging/oras/again:1", 1)
		},
		"backup and restore": func(t *testing.T) {
			program.must(t, "backup", "--plain-http", "--include-referrers", artifact+":1", "-o", "backup.tar")
			program.must(t, "restore", "--plain-http", host+"/staging/oras/restored", "--input", "backup.tar")
			program.wantReferrers(t, host+"/staging/oras/restored:1", 1)
			wantWords(t, "digest", program.must(t, "resolve", "--plain-http", host+"/staging/oras/restored:1"), d)
		},
		"blobs": func(t *testing.T) {
			program.writeFile(t, "blob", []byte("a blob\n"))
			ref := host + "/staging/oras/blobs@" + digest.FromString("a blob\n").String()
			program.must(t, "blob", "push", "--plain-http", host+"/staging/oras/blobs", "blob")
			wantWords(t, "blob", program.must(t, "blob", "fetch", "--plain-http", ref, "-o", "-"), "a", "blob")
			program.must(t, "blob", "delete", "--plain-http", "-f", ref)
			program.fails(t, "not found", "blob", "fetch", "--plain-http", ref, "-o", "-")
		},
		"tags, manifests and deletion": func(t *testing.T) {
			own := host + "/staging/oras/tags"
			program.must(t, "cp", "--from-plain-http", "--to-plain-http", artifact+":1", own+":1")
			program.must(t, "tag", "--plain-http", own+":1", "2", "3")
			wantWords(t, "tags", program.must(t, "repo", "tags", "--plain-http", "--last", "1", own), "2", "3")
			if raw := program.must(t, "manifest", "fetch", "--plain-http", own+":3"); digest.FromString(raw).String() != d {
				t.Errorf("the manifest is %s", raw)
			}
			program.must(t, "manifest", "index", "create", "--plain-http", own+":index", "1")
			program.must(t, "manifest", "delete", "--plain-http", "-f", own+"@"+d)
			wantWords(t, "tags after the manifest is deleted", program.must(t, "repo", "tags", "--plain-http", own), "index")
		},
		"a protected environment": func(t *testing.T) {
			program.fails(t, "denied: "+protectedSays, "cp", "--from-plain-http", "--to-plain-http", artifact+":1", host+"/prod/oras/model:1")
			program.fails(t, "denied: "+protectedSays, "push", "--plain-http", host+"/prod/oras/model:1", "model.onnx")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// wantReferrers wants oras to find so many referrers.
func (s *stock) wantReferrers(t *testing.T, ref string, want int, args ...string) {
	t.Helper()
	var found struct {
		Referrers []struct {
			ArtifactType string
			Annotations  map[string]string
		}
	}
	out := s.must(t, append([]string{"discover", "--plain-http", "--format", "json", ref}, args...)...)
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found.Referrers) != want {
		t.Fatalf("discover %s: %s (error %v), want %d referrers", ref, out, err, want)
	}
	for _, r := range found.Referrers {
		if r.ArtifactType != "application/vnd.report" || r.Annotations["kind"] != "parity" {
			t.Errorf("a referrer of %s is %+v", ref, r)
		}
	}
}
