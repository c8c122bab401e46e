//go:build cgo

package endtoend

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// skopeo has the client of podman and CRI-O in it.
func TestSkopeo(t *testing.T) {
	t.Parallel()
	skopeo := newStock(t, "skopeo")
	s := serveEmpty(t)
	host := s.Host()
	image := "docker://" + host + "/staging/skopeo/image"
	skopeo.seed(t, image+":1")
	raw := skopeo.must(t, "inspect", "--raw", "--tls-verify=false", image+":1")
	copies := func(t *testing.T, args ...string) {
		t.Helper()
		skopeo.must(t, append([]string{"--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false"}, args...)...)
	}
	for name, test := range map[string]func(*testing.T){
		"inspect": func(t *testing.T) {
			var told struct {
				Name, Digest     string
				RepoTags, Layers []string
			}
			out := skopeo.must(t, "inspect", "--tls-verify=false", image+":1")
			if err := json.Unmarshal([]byte(out), &told); err != nil || told.Digest != digest.FromString(raw).String() || len(told.Layers) != 2 || !slices.Equal(told.RepoTags, []string{"1"}) {
				t.Errorf("inspect: %s, error %v", out, err)
			}
			skopeo.fails(t, "manifest unknown", "inspect", "--tls-verify=false", image+":2")
		},
		"through an OCI layout": func(t *testing.T) {
			again := "docker://" + host + "/staging/skopeo/again:1"
			copies(t, "--preserve-digests", image+":1", "oci:layout:1")
			copies(t, "--preserve-digests", "oci:layout:1", again)
			wantWords(t, "the manifest after a way through a layout", skopeo.must(t, "inspect", "--raw", "--tls-verify=false", again), strings.Fields(raw)...)
		},
		"as docker save has it": func(t *testing.T) {
			copies(t, image+":1", "docker-archive:image.tar:image:1")
			copies(t, "--format", "v2s2", "docker-archive:image.tar", "docker://"+host+"/staging/skopeo/docker:1")
			if got := skopeo.must(t, "inspect", "--raw", "--tls-verify=false", "docker://"+host+"/staging/skopeo/docker:1"); !strings.Contains(got, "application/vnd.docker.distribution.manifest.v2+json") {
				t.Errorf("the manifest is %s", got)
			}
		},
		"between repositories": func(t *testing.T) {
			copies(t, "--preserve-digests", image+":1", "docker://"+host+"/staging/skopeo/copy:1")
			wantWords(t, "the copy", skopeo.must(t, "inspect", "--raw", "--tls-verify=false", "docker://"+host+"/staging/skopeo/copy:1"), strings.Fields(raw)...)
		},
		"tags and deletion": func(t *testing.T) {
			own := "docker://" + host + "/staging/skopeo/tags"
			copies(t, image+":1", own+":1")
			copies(t, image+":1", own+":2")
			var list struct{ Tags []string }
			if out := skopeo.must(t, "list-tags", "--tls-verify=false", own); json.Unmarshal([]byte(out), &list) != nil || !slices.Equal(list.Tags, []string{"1", "2"}) {
				t.Errorf("list-tags: %s", out)
			}
			skopeo.must(t, "delete", "--tls-verify=false", own+":1") // deletes what the tag names, so both
			skopeo.fails(t, "manifest unknown", "inspect", "--tls-verify=false", own+":2")
		},
		"a protected environment": func(t *testing.T) {
			skopeo.fails(t, "denied: "+protectedSays, "--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", image+":1", "docker://"+host+"/prod/skopeo/image:1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// seed pushes an image with two layers, from a folder as skopeo itself writes it.
func (s *stock) seed(t *testing.T, to string) {
	t.Helper()
	folder := filepath.Join(s.dir, "image")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		if err := os.WriteFile(filepath.Join(folder, d.Digest.Encoded()), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return d
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest}
	manifest.SchemaVersion = 2
	config := ocispec.Image{Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"}, RootFS: ocispec.RootFS{Type: "layers"}}
	for _, content := range [][]byte{tarOf(t, "first.txt", []byte("the first layer\n")), tarOf(t, "second.bin", random(300_000))} {
		layer := put(ocispec.MediaTypeImageLayer, content)
		manifest.Layers = append(manifest.Layers, layer)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, layer.Digest)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	manifest.Config = put(ocispec.MediaTypeImageConfig, raw)
	if raw, err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "manifest.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "--insecure-policy", "copy", "--dest-tls-verify=false", "dir:image", to)
}
