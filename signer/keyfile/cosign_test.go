package keyfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

const (
	bundleType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	emptyType    = "application/vnd.oci.empty.v1+json"
	password     = "s3cret"
)

// cosign is the stock program against a registry that listens on this machine only.
type cosign struct {
	binary string
	dir    string // of keys, and its home
	server *httptest.Server
	client *http.Client
}

// newCosign skips the test unless MLPROMOTE_COSIGN names the program.
func newCosign(t *testing.T) *cosign {
	t.Helper()
	binary := os.Getenv("MLPROMOTE_COSIGN")
	if binary == "" {
		t.Skip("MLPROMOTE_COSIGN names no cosign binary; go build -o PATH github.com/sigstore/cosign/v3/cmd/cosign in tools/cosign makes one")
	}
	server := httptest.NewServer(ggcr.New(ggcr.WithReferrersSupport(true), ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &cosign{binary: binary, dir: t.TempDir(), server: server, client: server.Client()}
}

// run gives the program's output.
func (c *cosign) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.binary, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "COSIGN_PASSWORD=" + password}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cosign) mustRun(t *testing.T, args ...string) {
	t.Helper()
	if out, err := c.run(t, args...); err != nil {
		t.Fatalf("cosign %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// path is the path of a file among the keys.
func (c *cosign) path(name string) string { return filepath.Join(c.dir, name) }

// do sends one request to the repository and gives the body of a good response.
func (c *cosign) do(t *testing.T, method, path, contentType string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+"/v2/prod/digits/"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v\n%s", method, path, response.Status, err, data)
	}
	return data
}

func (c *cosign) putBlob(t *testing.T, mediaType string, data []byte) map[string]any {
	t.Helper()
	d := digest.FromBytes(data)
	c.do(t, http.MethodPost, "blobs/uploads/?digest="+d.String(), "application/octet-stream", data)
	return map[string]any{"mediaType": mediaType, "digest": d, "size": len(data)}
}

// putManifest stores a manifest with one layer, and gives its descriptor.
func (c *cosign) putManifest(t *testing.T, manifest map[string]any, layerType string, layer []byte) map[string]any {
	t.Helper()
	manifest["schemaVersion"] = 2
	manifest["mediaType"] = manifestType
	manifest["config"] = c.putBlob(t, emptyType, []byte("{}"))
	manifest["layers"] = []any{c.putBlob(t, layerType, layer)}
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	d := digest.FromBytes(data)
	c.do(t, http.MethodPut, "manifests/"+d.String(), manifestType, data)
	return map[string]any{"mediaType": manifestType, "digest": d, "size": len(data)}
}

// putEngine stores something to sign, and gives its descriptor and reference.
func (c *cosign) putEngine(t *testing.T) (descriptor map[string]any, reference string) {
	t.Helper()
	descriptor = c.putManifest(t, map[string]any{"artifactType": "application/vnd.example"}, "application/octet-stream", []byte(t.Name()))
	return descriptor, fmt.Sprintf("%s/prod/digits@%s", strings.TrimPrefix(c.server.URL, "http://"), descriptor["digest"])
}

// attach signs a statement about the engine and stores the bundle as its referrer.
func (c *cosign) attach(t *testing.T, s signer.Signer, engine map[string]any, predicateType string) {
	t.Helper()
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(engine["digest"].(digest.Digest))}
	statement, err := evidence.NewStatement(predicateType, map[string]string{"verdict": "pass"}, subject)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := s.Sign(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	c.putManifest(t, map[string]any{
		"artifactType": bundleType,
		"subject":      engine,
		"annotations":  map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicateType},
	}, bundleType, bundle)
}

// bundles are the bundles that refer to the engine.
func (c *cosign) bundles(t *testing.T, engine map[string]any) [][]byte {
	t.Helper()
	type descriptor struct{ Digest digest.Digest }
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(c.do(t, http.MethodGet, fmt.Sprint("referrers/", engine["digest"]), "", nil), &index); err != nil {
		t.Fatal(err)
	}
	var bundles [][]byte
	for _, m := range index.Manifests {
		var manifest struct{ Layers []descriptor }
		if err := json.Unmarshal(c.do(t, http.MethodGet, "manifests/"+m.Digest.String(), "", nil), &manifest); err != nil {
			t.Fatal(err)
		}
		for _, layer := range manifest.Layers {
			bundles = append(bundles, c.do(t, http.MethodGet, "blobs/"+layer.Digest.String(), "", nil))
		}
	}
	return bundles
}

// generate makes a key with keyfile.
func (c *cosign) generate(t *testing.T, name string) signer.Signer {
	t.Helper()
	if _, err := keyfile.Generate(c.dir, name, []byte(password)); err != nil {
		t.Fatal(err)
	}
	s, err := keyfile.Open(c.path(name+".key"), []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Store cosign accepts what we sign, for the right key and type only.
func TestCosignVerifiesOurBundles(t *testing.T) {
	t.Parallel()
	c := newCosign(t)
	ours := c.generate(t, "ours")
	c.generate(t, "other")
	engine, reference := c.putEngine(t)
	c.attach(t, ours, engine, evidence.PredicateSign)
	c.attach(t, ours, engine, evidence.PredicateParity)

	verify := []string{"verify", "--insecure-ignore-tlog", "--allow-http-registry"}
	attestation := []string{"verify-attestation", "--insecure-ignore-tlog", "--allow-http-registry", "--type"}
	for _, run := range []struct {
		name string
		args []string
		ok   bool
	}{
		{"verify", append(verify, "--key", "ours.pub", reference), true},
		{"verify, other key", append(verify, "--key", "other.pub", reference), false},
		{"verify-attestation", append(attestation, evidence.PredicateParity, "--key", "ours.pub", reference), true},
		{"verify-attestation, other key", append(attestation, evidence.PredicateParity, "--key", "other.pub", reference), false},
		{"verify-attestation, other type", append(attestation, evidence.PredicateApproval, "--key", "ours.pub", reference), false},
	} {
		if out, err := c.run(t, run.args...); (err == nil) != run.ok {
			t.Errorf("%s: %v, want success %v\n%s", run.name, err, run.ok, out)
		}
	}
}

// Our key files sign in stock cosign, and we accept what it stores.
func TestCosignSignsWithOurKey(t *testing.T) {
	t.Parallel()
	c := newCosign(t)
	ours := c.generate(t, "ours")
	engine, reference := c.putEngine(t)
	if err := os.WriteFile(c.path("predicate.json"), []byte(`{"verdict":"pass"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	offline := []string{"--key", "ours.key", "--use-signing-config=false", "--tlog-upload=false", "--allow-http-registry", "--yes"}
	c.mustRun(t, append(append([]string{"sign"}, offline...), reference)...)
	c.mustRun(t, append(append([]string{"attest", "--type", evidence.PredicateParity, "--predicate", "predicate.json"}, offline...), reference)...)

	trust, err := signer.NewTrust([]trust.TrustEntry{{Key: c.path("ours.pub"),
		Roles: evidence.Roles(), Resources: []string{"oci://local/"}}}, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, bundle := range c.bundles(t, engine) {
		claim, err := trust.Verify(t.Context(), bundle, "oci://local/prod/digits")
		if err != nil {
			t.Errorf("%v\n%s", err, bundle)
			continue
		}
		if !claim.Statement.About(engine["digest"].(digest.Digest)) || claim.Signer != ours.KeyID() {
			t.Errorf("claim %+v, want one about %v by %s", claim, engine["digest"], ours.KeyID())
		}
		found[claim.Statement.PredicateType] = true
	}
	if !found[evidence.PredicateSign] || !found[evidence.PredicateParity] {
		t.Errorf("found %v, want a signature and a parity attestation", found)
	}
}

// A key of stock cosign signs here, and cosign accepts that.
func TestCosignKeyOpens(t *testing.T) {
	t.Parallel()
	c := newCosign(t)
	c.mustRun(t, "generate-key-pair", "--output-key-prefix", "theirs")
	theirs, err := keyfile.Open(c.path("theirs.key"), []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(c.path("theirs.pub"))
	if err != nil || !bytes.Equal(public, theirs.PublicKeyPEM()) {
		t.Errorf("cosign wrote the public key %s (%v), we read %s", public, err, theirs.PublicKeyPEM())
	}
	engine, reference := c.putEngine(t)
	c.attach(t, theirs, engine, evidence.PredicateSign)
	c.mustRun(t, "verify", "--insecure-ignore-tlog", "--allow-http-registry", "--key", "theirs.pub", reference)
}
