//go:build cgo

package endtoend

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-containerregistry/pkg/name"
	ggcrregistry "github.com/google/go-containerregistry/pkg/registry"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// clusterImagePolicy is what the tests read of a ClusterImagePolicy.
type clusterImagePolicy struct {
	Spec struct {
		Authorities []struct {
			Key          struct{ Data string }
			Attestations []struct {
				PredicateType string `yaml:"predicateType"`
				Policy        struct{ Type, Data string }
			}
		}
	}
}

// policy-controller asks cosign's library about an image, with the key and the CUE of the policy. cosign's program asks
// it the same. Kyverno asks the same library for bundles, and reads the image before that as testKyvernoReads does.
func testExportedPolicy(t *testing.T, p *plain) {
	cosign := newStock(t, "cosign")
	file := filepath.Join(cosign.dir, "policy.yaml")
	p.must(t, "export", "policy", "--for", "policy-controller", "--env", "prod", "-o", file)
	key, cue := authority(t, file)
	cosign.writeFile(t, "promoter.pub", []byte(key))
	cosign.writeFile(t, "prod.cue", []byte(cue))
	cosign.writeFile(t, "staging.cue", []byte(strings.ReplaceAll(cue, "/prod/", "/staging/")))
	cosign.writeFile(t, "verifier.cue", []byte(strings.ReplaceAll(cue, "service/local", "service/other")))
	cosign.writeFile(t, "levels.cue", []byte(strings.ReplaceAll(cue, "MLPROMOTE_", "OTHER_")))
	verify := []string{"verify-attestation", "--key", "promoter.pub", "--type", evidence.PredicateVSA, "--insecure-ignore-tlog", "--allow-http-registry", "--policy"}
	old := older(t, p, cosign)
	for _, form := range []struct{ ref, flag string }{{p.prod, "--new-bundle-format=true"}, {old, "--new-bundle-format=false"}} {
		cosign.must(t, append(verify, "prod.cue", form.flag, form.ref)...)
		for _, other := range []string{"staging.cue", "verifier.cue", "levels.cue"} {
			cosign.fails(t, "validation errors", append(verify, other, form.flag, form.ref)...)
		}
	}
	// What was not promoted has no summary, in no form.
	cosign.fails(t, "", append(verify, "prod.cue", p.staged)...)
	testKyvernoReads(t, p)
}

// authority is the only authority of the first policy in a file: its key and its CUE.
func authority(t *testing.T, file string) (key, cue string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var policy clusterImagePolicy
	if err := yaml.NewDecoder(strings.NewReader(string(data))).Decode(&policy); err != nil {
		t.Fatal(err)
	}
	a := policy.Spec.Authorities
	if len(a) != 1 || len(a[0].Attestations) != 1 || a[0].Attestations[0].PredicateType != evidence.PredicateVSA || a[0].Attestations[0].Policy.Type != "cue" {
		t.Fatalf("authorities of %s are %+v, want one with a policy in CUE about summaries", file, a)
	}
	return a[0].Key.Data, a[0].Attestations[0].Policy.Data
}

// older copies the engine without its referrers to another registry, attaches the summary there in the form of
// earlier versions of cosign, and gives its ref.
func older(t *testing.T, p *plain, cosign *stock) string {
	t.Helper()
	s := httptest.NewServer(ggcrregistry.New(ggcrregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	from, err := name.ParseReference(p.prod, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := ggcr.Image(from, ggcr.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	to, err := name.ParseReference(s.Listener.Addr().String()+"/prod/vision/digits:copy", name.Insecure)
	if err := errors.Join(err, ggcr.Write(to, image, ggcr.WithContext(t.Context()))); err != nil {
		t.Fatal(err)
	}
	ref := to.Context().Digest(string(p.engine)).Name()
	p.must(t, "trust", "export", "vision/digits", "--env", "prod", "--dsse", "-o", filepath.Join(cosign.dir, "vsa.json"))
	cosign.must(t, "attach", "attestation", "--allow-http-registry", "--attestation", "vsa.json", ref)
	return ref
}

// testKyvernoReads reads an engine as imagedataloader of Kyverno's SDK does before it asks for signatures.
func testKyvernoReads(t *testing.T, p *plain) {
	t.Helper()
	ref, err := name.ParseReference(p.prod, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := ggcr.Image(ref, ggcr.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = image.Manifest()
	if _, config := image.ConfigFile(); err != nil || config != nil {
		t.Errorf("Kyverno cannot read %s: manifest %v, config %v", ref, err, config)
	}
}
