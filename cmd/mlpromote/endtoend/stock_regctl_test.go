//go:build cgo

package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// regctl uses the optional parts of the protocol more than others do.
func TestRegctl(t *testing.T) {
	t.Parallel()
	regctl := newStock(t, "regctl")
	s := serveEmpty(t)
	host := s.Host()
	regctl.must(t, "registry", "set", host, "--tls", "disabled", "--blob-chunk", "4096", "--blob-max", "8192")
	data := random(100_000)
	regctl.writeFile(t, "data.bin", data)
	thing := host + "/staging/regctl/thing:1"
	regctl.must(t, "artifact", "put", thing, "--artifact-type", "application/vnd.thing", "-f", "data.bin")
	for name, test := range map[string]func(*testing.T){
		"blobs in chunks":        func(t *testing.T) { regctlBlobs(t, regctl, host, data) },
		"a pull that breaks off": func(t *testing.T) { regctlResumes(t, regctl, host) },
		"referrers":              func(t *testing.T) { regctlReferrers(t, regctl, host, thing) },
		"referrers in pages":     func(t *testing.T) { regctlPages(t, regctl, host) },
		"index":                  func(t *testing.T) { regctlIndex(t, regctl, host) },
		"tags and deletion":      func(t *testing.T) { regctlDeletes(t, regctl, host, thing) },
		"sha512":                 func(t *testing.T) { regctlSHA512(t, regctl, host, data) },
		"a protected environment": func(t *testing.T) {
			regctl.fails(t, protectedSays, "image", "copy", thing, host+"/prod/regctl/thing:1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func regctlBlobs(t *testing.T, regctl *stock, host string, data []byte) {
	repository, d := host+"/staging/regctl/blobs", digest.FromBytes(data).String()
	out, told, err := regctl.try(t, data, "-v", "debug", "blob", "put", repository)
	if chunks := strings.Count(told, "Next chunk upload location received"); err != nil || strings.TrimSpace(out) != d || chunks < len(data)/8192 {
		t.Fatalf("blob put: %v, %d chunks, %s\n%s", err, chunks, out, told)
	}
	if got := regctl.must(t, "blob", "head", repository, d); !strings.Contains(got, "Content-Length: 100000") || !strings.Contains(got, "Accept-Ranges: bytes") {
		t.Errorf("blob head: %s", got)
	}
	if got, told, err := regctl.try(t, nil, "blob", "get", repository, d); err != nil || got != string(data) {
		t.Errorf("blob get: %d bytes, %v\n%s", len(got), err, told)
	}
	regctl.must(t, "blob", "delete", repository, d)
	regctl.fails(t, "not found", "blob", "get", repository, d)
}

// A pull whose connection breaks goes on where it was, by ranges.
func regctlResumes(t *testing.T, regctl *stock, host string) {
	const size, cuts = 4 << 20, 2
	data := random(size)
	d := digest.FromBytes(data).String()
	if _, told, err := regctl.try(t, data, "blob", "put", host+"/staging/regctl/resumed"); err != nil {
		t.Fatal(err, told)
	}
	network := registrytest.NewNetwork(t, host, 1, 1<<20, cuts)
	got, told, err := regctl.try(t, nil, "--host", "reg="+network.Host()+",tls=disabled", "blob", "get", network.Host()+"/staging/regctl/resumed", d)
	if err != nil || got != string(data) {
		t.Errorf("blob get over a network that breaks: %d bytes, %v\n%s", len(got), err, told)
	}
	if n, down := network.Broken(), network.Down(); n != cuts || down > size*5/4 {
		t.Errorf("%d connections were cut, want %d; %d bytes came for %d", n, cuts, down, size)
	}
}

func regctlReferrers(t *testing.T, regctl *stock, host, thing string) {
	regctl.writeFile(t, "signature", []byte("a signature\n"))
	for _, kind := range []string{"signature", "sbom"} {
		regctl.must(t, "artifact", "put", "--subject", thing, "--artifact-type", "application/vnd."+kind, "--annotation", "kind="+kind, "-f", "signature")
	}
	wantKinds := func(of string, want int, args ...string) {
		t.Helper()
		var list struct{ Descriptors []ocispec.Descriptor }
		out := regctl.must(t, append([]string{"artifact", "list", of, "--format", "{{json .}}"}, args...)...)
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Descriptors) != want {
			t.Errorf("artifact list %s %v: %s (error %v), want %d", of, args, out, err, want)
		}
		for _, d := range list.Descriptors {
			if d.ArtifactType != "application/vnd."+d.Annotations["kind"] {
				t.Errorf("a referrer is listed as %+v", d)
			}
		}
	}
	wantKinds(thing, 2)
	wantKinds(thing, 1, "--filter-artifact-type", "application/vnd.sbom")
	wantKinds(thing, 0, "--filter-artifact-type", "application/vnd.other")
	wantWords(t, "artifact get", regctl.must(t, "artifact", "get", "--subject", thing, "--filter-artifact-type", "application/vnd.signature"), "a", "signature")
	if tree := regctl.must(t, "artifact", "tree", thing); strings.Count(tree, "application/vnd.s") != 2 {
		t.Errorf("artifact tree: %s", tree)
	}
	wantWords(t, "tags, none of which stands for referrers", regctl.must(t, "tag", "ls", strings.TrimSuffix(thing, ":1")), "1")
	copied := host + "/staging/regctl/with-referrers:1"
	regctl.must(t, "image", "copy", "--referrers", thing, copied)
	wantKinds(copied, 2)
	regctl.must(t, "image", "copy", "--referrers", copied, "ocidir://referrers:1")
	wantKinds("ocidir://referrers:1", 2)
}

// Referrers that do not fit into one manifest come in pages, which regctl follows.
func regctlPages(t *testing.T, regctl *stock, host string) {
	repo, err := remote.NewRepository(host + "/staging/regctl/pages")
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	subject, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "application/vnd.thing", oras.PackManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 48 // of 100 kB each: more than the 4 MiB of a page
	for i := range n {
		annotations := map[string]string{"n": fmt.Sprint(i), "long": strings.Repeat("x", 100_000)}
		if _, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "application/vnd.note", oras.PackManifestOptions{Subject: &subject, ManifestAnnotations: annotations}); err != nil {
			t.Fatal(err)
		}
	}
	got := regctl.must(t, "artifact", "list", host+"/staging/regctl/pages@"+string(subject.Digest), "--format", `{{range .Descriptors}}{{index .Annotations "n"}}{{println}}{{end}}`)
	seen := make(map[string]bool)
	for _, number := range strings.Fields(got) {
		seen[number] = true
	}
	if len(seen) != n {
		t.Errorf("%d different referrers are listed, want %d: %s", len(seen), n, got)
	}
}

func regctlIndex(t *testing.T, regctl *stock, host string) {
	own := host + "/staging/regctl/index"
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		regctl.writeFile(t, "engine", []byte(platform))
		regctl.must(t, "artifact", "put", own+":"+strings.ReplaceAll(platform, "/", "-"), "--artifact-type", "application/vnd.engine", "-f", "engine")
	}
	regctl.must(t, "index", "create", own+":all", "--ref", own+":linux-amd64", "--desc-platform", "linux/amd64")
	regctl.must(t, "index", "add", own+":all", "--ref", own+":linux-arm64", "--desc-platform", "linux/arm64")
	raw := regctl.must(t, "manifest", "get", own+":all", "--format", "raw-body")
	var index ocispec.Index
	if err := json.Unmarshal([]byte(raw), &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("the index is %s, error %v", raw, err)
	}
	regctl.must(t, "image", "copy", own+":all", "ocidir://index:all")
	regctl.must(t, "image", "copy", "ocidir://index:all", host+"/staging/regctl/from-layout:all")
	wantWords(t, "digest after a way through a layout", regctl.must(t, "image", "digest", host+"/staging/regctl/from-layout:all"), digest.FromString(raw).String())
	regctl.must(t, "index", "delete", own+":all", "--digest", string(index.Manifests[0].Digest))
	raw = regctl.must(t, "manifest", "get", own+":all", "--format", "raw-body")
	if err := json.Unmarshal([]byte(raw), &index); err != nil || len(index.Manifests) != 1 {
		t.Errorf("the index less one entry is %s, error %v", raw, err)
	}
}

func regctlDeletes(t *testing.T, regctl *stock, host, thing string) {
	own := host + "/staging/regctl/tags"
	for _, tag := range []string{"1", "2", "3", "4"} {
		regctl.must(t, "image", "copy", thing, own+":"+tag)
	}
	wantWords(t, "tags", regctl.must(t, "tag", "ls", own, "--limit", "2", "--last", "1"), "2", "3")
	regctl.must(t, "tag", "delete", own+":2")
	wantWords(t, "tags", regctl.must(t, "tag", "ls", own), "1", "3", "4")
	d := regctl.must(t, "manifest", "head", own+":1")
	regctl.must(t, "manifest", "delete", own+"@"+d)
	wantWords(t, "tags after the manifest is deleted", regctl.must(t, "tag", "ls", own))
	regctl.fails(t, "not found", "manifest", "get", own+":1")
}

func regctlSHA512(t *testing.T, regctl *stock, host string, data []byte) {
	own := host + "/staging/regctl/sha512"
	d := digest.SHA512.FromBytes(data).String()
	if out, told, err := regctl.try(t, data, "blob", "put", own, "--digest", d); err != nil || strings.TrimSpace(out) != d {
		t.Fatalf("blob put: %s, %v\n%s", out, err, told)
	}
	regctl.writeFile(t, "layer.tar", tarOf(t, "file", data))
	crane := newStock(t, "crane") // regctl makes no image from nothing
	crane.dir = regctl.dir
	crane.must(t, "append", "-f", "layer.tar", "-t", own+":1")
	regctl.must(t, "image", "mod", own+":1", "--digest-algo", "sha512", "--create", own+":by-sha512")
	tagged := regctl.must(t, "image", "digest", own+":by-sha512")
	if !strings.HasPrefix(tagged, "sha512:") {
		t.Errorf("the tag names %s", tagged)
	}
	regctl.must(t, "image", "copy", own+":by-sha512", host+"/staging/regctl/sha512-copy:1")
	wantWords(t, "digest of the copy", regctl.must(t, "image", "digest", host+"/staging/regctl/sha512-copy:1"), tagged)
	regctl.must(t, "image", "export", own+":by-sha512", "image.tar")
	if exported, err := os.ReadFile(filepath.Join(regctl.dir, "image.tar")); err != nil || !bytes.Contains(exported, []byte("blobs/sha512/")) {
		t.Errorf("the exported image has %d bytes and nothing by sha512, error %v", len(exported), err)
	}
}
