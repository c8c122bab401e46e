//go:build cgo

package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcrregistry "github.com/google/go-containerregistry/pkg/registry"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// TestPlainClients uses a service with programs and libraries that know nothing of
// mlpromote, after the job was done over the network.
func TestPlainClients(t *testing.T) {
	t.Parallel()
	p := newPlain(t)
	for name, test := range map[string]func(*testing.T, *plain){
		"oras-go": testOras, "go-containerregistry": testContainerRegistry, "direct push": testDirectPush,
		"cosign": testCosign, "cosign, release": testCosignRelease, "oras": testOrasProgram, "readme": testReadmeServed,
		"exported policy": testExportedPolicy, "model signing": testModelSigning, "bom": testBOM, "node types": testNodeTypes, "crane": testCrane, "regctl": testRegctl, "skopeo": testSkopeo,
		"image form": testImageForm, "image form, skopeo": testImageFormSkopeo, "image form, cosign": testImageFormCosign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// plain is a service with a promoted release.
type plain struct {
	*programtest.Service
	dir     string            // where the verbs run
	staged  string            // HOST/REPOSITORY@DIGEST of the engine that this machine gets
	prod    string            // as staged
	engine  registry.Digest   // of both
	release registry.Digest   // that it is of
	stored  map[string][]byte // its files by name, as the data directory has them
	exact   []byte            // its manifest
}

func newPlain(t *testing.T) *plain {
	t.Helper()
	root := t.TempDir()
	p := &plain{Service: programtest.NewService(t, programtest.Program(t), root), dir: filepath.Join(root, "digits")}
	p.MustStartAndStop(t)
	p.promote(t)
	return p
}

// promote does the job as a client of the service, and notes what is now in prod.
func (p *plain) promote(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.ShareKeys(), programtest.Example("digits", p.dir)); err != nil {
		t.Fatal(err)
	}
	p.must(t, "build")
	p.must(t, "verify")
	promoted := p.must(t, "promote")
	p.staged, p.prod = p.must(t, "resolve", programtest.Model, "--env", "staging"), p.must(t, "resolve", programtest.Model, "--env", "prod")
	p.engine = registry.Digest(p.prod[strings.Index(p.prod, "@")+1:])
	p.release = registry.Digest(promoted[strings.Index(promoted, "@")+1:])
	p.read(t)
}

// read takes the engine from the files of the data directory.
func (p *plain) read(t *testing.T) {
	t.Helper()
	p.exact, p.stored = p.blob(t, p.engine), make(map[string][]byte)
	var manifest ocispec.Manifest
	if err := json.Unmarshal(p.exact, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		p.stored[layer.Annotations[ocispec.AnnotationTitle]] = p.blob(t, layer.Digest)
	}
	if len(p.stored["model.onnx"]) == 0 {
		t.Fatalf("the engine has the files %v", slices.Sorted(maps.Keys(p.stored)))
	}
}

func (p *plain) blob(t *testing.T, d registry.Digest) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.Dir, "blobs", d.Algorithm().String(), d.Encoded()[:2], d.Encoded()))
	if err != nil || digest.FromBytes(data) != d {
		t.Fatalf("blob %s: %d bytes, %v", d, len(data), err)
	}
	return data
}

// must runs a verb against the service and gives its stdout.
func (p *plain) must(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.Program, args...)
	cmd.Dir = p.dir
	cmd.Env = slices.Concat(os.Environ(), p.ClientEnv())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("mlpromote %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func (p *plain) repository(t *testing.T, name string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(p.Host() + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	return repo
}

// wantFiles wants a folder to hold the engine's files, under their names, and no others.
func (p *plain) wantFiles(t *testing.T, dir string) {
	t.Helper()
	found := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			found[filepath.ToSlash(name)] = true
		}
		return err
	})
	if err != nil || len(found) != len(p.stored) {
		t.Errorf("the folder has %v (error %v), want %v", slices.Sorted(maps.Keys(found)), err, slices.Sorted(maps.Keys(p.stored)))
	}
	for name, data := range p.stored {
		if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes (error %v), want the %d that are stored", name, len(got), err, len(data))
		}
	}
}

// oras-go, as the program oras uses it, puts the files of an engine into a folder.
func testOras(t *testing.T, p *plain) {
	for _, name := range []string{"staging/vision/digits", "prod/vision/digits"} {
		dir := t.TempDir()
		folder, err := file.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		desc, err := oras.Copy(t.Context(), p.repository(t, name), string(p.engine), folder, string(p.engine), oras.DefaultCopyOptions)
		if err := errors.Join(err, folder.Close()); err != nil || desc.Digest != p.engine {
			t.Fatalf("copy %s from %s: %v, %v", p.engine, name, desc, err)
		}
		p.wantFiles(t, dir)
	}
}

// go-containerregistry, as docker's tools and cosign use it, gets the exact bytes.
func testContainerRegistry(t *testing.T, p *plain) {
	ref, err := name.ParseReference(p.prod, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ggcr.Get(ref, ggcr.WithContext(t.Context()))
	if err != nil || !bytes.Equal(got.Manifest, p.exact) {
		t.Fatalf("the manifest is %v, error %v", got, err)
	}
	image, err := ggcr.Image(ref, ggcr.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := image.RawManifest(); err != nil || !bytes.Equal(raw, p.exact) {
		t.Errorf("the image's manifest has %d bytes, error %v", len(raw), err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != len(p.stored) {
		t.Fatalf("%d layers, error %v, want %d", len(layers), err, len(p.stored))
	}
	for _, layer := range layers {
		d, err := layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || digest.FromBytes(data).String() != d.String() {
			t.Errorf("layer %s has %d other bytes, error %v", d, len(data), err)
		}
	}
	released, err := name.ParseReference(p.Host()+"/prod/vision/digits:1.0.0", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if index, err := ggcr.Index(released, ggcr.WithContext(t.Context())); err != nil {
		t.Error(err)
	} else if d, err := index.Digest(); err != nil || d.String() != string(p.release) {
		t.Errorf("the tag names %s (error %v), want %s", d, err, p.release)
	}
}

// What is protected is not written over /v2/, in none of the ways that there are.
func testDirectPush(t *testing.T, p *plain) {
	prod := p.repository(t, "prod/vision/digits")
	released, err := prod.Resolve(t.Context(), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("a blob")
	blob := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(data), Size: int64(len(data))}
	manifest := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: p.engine, Size: int64(len(p.exact))}
	for what, err := range map[string]error{
		"push a blob":          prod.Push(t.Context(), blob, bytes.NewReader(data)),
		"mount a blob":         prod.Mount(t.Context(), blob, "staging/vision/digits", nil),
		"push a manifest":      prod.Push(t.Context(), manifest, bytes.NewReader(p.exact)),
		"move a tag":           prod.PushReference(t.Context(), manifest, bytes.NewReader(p.exact), "1.0.0"),
		"make a tag":           prod.Tag(t.Context(), released, "9.9.9"),
		"delete a manifest":    prod.Manifests().Delete(t.Context(), released),
		"a model of one's own": p.repository(t, "prod/mine").Push(t.Context(), blob, bytes.NewReader(data)),
		"no environment":       p.repository(t, "elsewhere/mine").Push(t.Context(), blob, bytes.NewReader(data)),
	} {
		var response *errcode.ErrorResponse
		if !errors.As(err, &response) || response.StatusCode != http.StatusForbidden || len(response.Errors) != 1 || response.Errors[0].Code != "DENIED" {
			t.Errorf("%s: error %v, want 403 DENIED", what, err)
		}
	}
	if now, err := prod.Resolve(t.Context(), "1.0.0"); err != nil || now.Digest != released.Digest {
		t.Errorf("1.0.0 in prod is %s, error %v", now.Digest, err)
	}
}

func testCosign(t *testing.T, p *plain) {
	cosign := newStock(t, "cosign")
	public := filepath.Join(p.Dir, "keys", "local.pub")
	other := filepath.Join(cosign.dir, "local.pub")
	p.must(t, "key", "generate", "--keys", cosign.dir)
	for _, ref := range []string{p.staged, p.prod, copyElsewhere(t, p.prod)} {
		for name, c := range map[string]struct {
			key  string
			pass bool
		}{"our key": {public, true}, "another key": {other, false}, "no key": {filepath.Join(cosign.dir, "missing.pub"), false}} {
			for _, verb := range [][]string{{"verify"}, {"verify-attestation", "--type", evidence.PredicateParity}, {"verify-attestation", "--type", evidence.PredicateProvenance}} {
				args := append(verb, "--key", c.key, "--insecure-ignore-tlog", "--allow-http-registry", ref)
				if out, told, err := cosign.try(t, nil, args...); (err == nil) != c.pass {
					t.Errorf("with %s: cosign %s: %v, want success %t\n%s%s", name, strings.Join(args, " "), err, c.pass, out, told)
				}
			}
		}
	}
}

// The release itself is signed, and in prod its summary is attached to it.
func testCosignRelease(t *testing.T, p *plain) {
	cosign := newStock(t, "cosign")
	offline := []string{"--key", filepath.Join(p.Dir, "keys", "local.pub"), "--insecure-ignore-tlog", "--allow-http-registry"}
	for _, environment := range []string{"staging", "prod"} {
		cosign.must(t, append(append([]string{"verify"}, offline...), p.Host()+"/"+environment+"/vision/digits:1.0.0")...)
	}
	cosign.must(t, append(append([]string{"verify-attestation", "--type", evidence.PredicateVSA}, offline...), p.Host()+"/prod/vision/digits:1.0.0")...)
}

// copyElsewhere copies an engine with its evidence to another registry that knows referrers, and returns its
// place there.
func copyElsewhere(t *testing.T, ref string) string {
	t.Helper()
	elsewhere := httptest.NewServer(ggcrregistry.New(ggcrregistry.WithReferrersSupport(true), ggcrregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(elsewhere.Close)
	_, engine, _ := strings.Cut(ref, "@")
	repository := strings.TrimPrefix(elsewhere.URL, "http://") + "/copied/digits"
	newStock(t, "oras").must(t, "cp", "--recursive", "--from-plain-http", "--to-plain-http", ref, repository+":1")
	return repository + "@" + engine
}

func testOrasProgram(t *testing.T, p *plain) {
	program := newStock(t, "oras")
	program.must(t, "pull", "--plain-http", p.prod, "-o", "pulled")
	p.wantFiles(t, filepath.Join(program.dir, "pulled"))
	listed := strings.Fields(program.must(t, "repo", "ls", "--plain-http", p.Host()))
	for _, name := range []string{"staging/vision/digits", "staging/vision/digits/sources", "prod/vision/digits"} {
		if !slices.Contains(listed, name) {
			t.Errorf("oras lists %q, want %s too", listed, name)
		}
	}
	wantWords(t, "the repositories after one", program.must(t, "repo", "ls", "--plain-http", "--last", "prod/vision", p.Host()+"/prod"), "vision/digits")
}

// crane sees the tags of a release and the exact bytes.
func testCrane(t *testing.T, p *plain) {
	crane := newStock(t, "crane")
	if raw, told, err := crane.try(t, nil, "manifest", p.prod); err != nil || raw != string(p.exact) {
		t.Errorf("the manifest has %d bytes, want the %d that are stored: %v\n%s", len(raw), len(p.exact), err, told)
	}
	if tags := strings.Fields(crane.must(t, "ls", p.Host()+"/prod/vision/digits")); !slices.Contains(tags, "1.0.0") || !slices.Contains(tags, artifact.HeadTag) {
		t.Errorf("tags: %v", tags)
	}
	wantWords(t, "the release", crane.must(t, "digest", p.Host()+"/prod/vision/digits:1.0.0"), string(p.release))
}

// regctl finds the evidence about an engine, and takes both along.
func testRegctl(t *testing.T, p *plain) {
	regctl := newStock(t, "regctl")
	regctl.must(t, "registry", "set", p.Host(), "--tls", "disabled")
	wantWords(t, "the first repository", regctl.must(t, "repo", "ls", "--limit", "1", p.Host()), "prod/vision/digits")
	wantWords(t, "the one after it", regctl.must(t, "repo", "ls", "--limit", "1", "--last", "prod/vision/digits", p.Host()), "staging/vision/digits")
	list := []string{"artifact", "list", "--format", `{{range .Descriptors}}{{index .Annotations "dev.sigstore.bundle.predicateType"}}{{println}}{{end}}`}
	found := strings.Fields(regctl.must(t, append(list, p.prod)...))
	for _, predicate := range []string{evidence.PredicateSign, evidence.PredicateProvenance, evidence.PredicateParity, evidence.PredicateVSA} {
		if !slices.Contains(found, predicate) {
			t.Errorf("of the engine's evidence regctl lists %v, want %s too", found, predicate)
		}
	}
	regctl.must(t, "image", "copy", "--referrers", p.prod, "ocidir://engine:1")
	if copied := strings.Fields(regctl.must(t, append(list, "ocidir://engine:1")...)); len(copied) != len(found) {
		t.Errorf("the copy has %v, want %v", copied, found)
	}
}

// skopeo takes an engine into an OCI layout byte for byte.
func testSkopeo(t *testing.T, p *plain) {
	skopeo := newStock(t, "skopeo")
	skopeo.must(t, "--insecure-policy", "copy", "--preserve-digests", "--src-tls-verify=false", "docker://"+p.prod, "oci:engine:1")
	blobs := filepath.Join(skopeo.dir, "engine", "blobs", "sha256")
	if raw, err := os.ReadFile(filepath.Join(blobs, p.engine.Encoded())); err != nil || !bytes.Equal(raw, p.exact) {
		t.Errorf("the manifest in the layout has %d bytes, error %v", len(raw), err)
	}
	for name, data := range p.stored {
		if got, err := os.ReadFile(filepath.Join(blobs, digest.FromBytes(data).Encoded())); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s in the layout has %d bytes, error %v", name, len(got), err)
		}
	}
}

// testReadmeServed runs what the README tells a node to type, less the lines whose
// program is not here.
func testReadmeServed(t *testing.T, p *plain) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, ".mlpromote", "keys"), os.DirFS(filepath.Join(p.Client, "keys"))); err != nil {
		t.Fatal(err)
	}
	have, bin := make(map[string]bool), t.TempDir()
	for _, program := range []string{"oras", "cosign"} {
		var path string
		if path, have[program] = findProgram(program); have[program] {
			if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range programtest.Blocks(t, "README.md", "served") {
		script := b.Text
		for program, there := range have {
			if !there {
				t.Logf("README.md:%d: the line with %s is left out: it is not here", b.Line, program)
				script = regexp.MustCompile("(?m)^"+program+" .*$").ReplaceAllString(script, ":")
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script+"echo \"REF=$REF\"\n")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "URL="+p.URL, "HOME="+dir, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\nREF="+p.Host()+"/prod/vision/digits@sha256:") && !strings.HasPrefix(string(out), "REF="+p.Host()+"/prod/vision/digits@sha256:") {
			t.Errorf("README.md:%d: %v\n%s\n%s", b.Line, err, script, out)
		}
	}
}

// testNodeTypes asks for the engine of a node that the operator has described.
func testNodeTypes(t *testing.T, p *plain) {
	types := filepath.Join(p.Dir, "node-types")
	if err := os.MkdirAll(types, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"box": p.must(t, "node", "describe"), "broken": `{"v":1,`, ".hidden": "{}"} {
		if err := os.WriteFile(filepath.Join(types, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{
		"box": 200, "closet": 404, "broken": 500, ".hidden": 400, "..%2Fkeys": 400, "%2Fetc%2Fpasswd": 400, "box%00": 400,
	} {
		response, err := http.Get(p.URL + "/api/v1/models/vision/digits/resolve?environment=prod&runtime=onnxruntime:1.30.0&nodeType=" + name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want || bytes.Contains(body, []byte(types)) || (want == 200) != bytes.Contains(body, []byte(p.engine)) {
			t.Errorf("node type %s: %s, want %d\n%s (error %v)", name, response.Status, want, body, err)
		}
	}
}
