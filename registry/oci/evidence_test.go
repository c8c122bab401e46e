package oci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Evidence is stored as cosign v3 stores it: pkg/oci/remote/write.go, less the time.
func TestEvidenceShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	data := bundle(evidence.PredicateSign)
	want := fmt.Sprintf(`{
		"annotations": {
			"dev.sigstore.bundle.content": "dsse-envelope",
			"dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1"
		},
		"artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"config": {
			"artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
			"digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
			"mediaType": "application/vnd.oci.empty.v1+json",
			"size": 2
		},
		"layers": [{
			"digest": %q,
			"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
			"size": %d
		}],
		"mediaType": "application/vnd.oci.image.manifest.v1+json",
		"schemaVersion": 2,
		"subject": {
			"digest": %q,
			"mediaType": "application/vnd.oci.image.index.v1+json",
			"size": %d
		}
	}`, digest.FromBytes(data), len(data), w.release.Digest, w.release.Size)
	if diff := cmp.Diff(pretty(t, []byte(want)), pretty(t, stored(t, w.blobs, w.evidence[0]))); diff != "" {
		t.Errorf("evidence manifest (-want +got):\n%s", diff)
	}
}

// Every subject gets its own referrer over one bundle.
func TestEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	engine := w.release.Engines[0].Digest // has a signature and a report
	got, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, engine))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !slices.IsSortedFunc(got, func(a, b evidence.Bundle) int { return strings.Compare(string(a.Digest), string(b.Digest)) }) {
		t.Fatalf("got %d bundles: %v", len(got), got)
	}
	types := map[string]bool{}
	for _, b := range got {
		types[b.PredicateType] = true
		if !slices.Contains(w.evidence, b.Digest) || string(b.Data) != string(bundle(b.PredicateType)) {
			t.Errorf("got %s with %s", b.Digest, b.Data)
		}
	}
	if !types[evidence.PredicateSign] || !types[evidence.PredicateParity] {
		t.Errorf("got predicate types %v", types)
	}
	for _, d := range []registry.Digest{w.release.Limits, digest.FromString("unknown")} {
		if got, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, d)); err != nil || len(got) != 0 {
			t.Errorf("%s: got %v, %v", d, got, err)
		}
	}
}

// What strangers attach is skipped, whatever it is.
func TestEvidenceSkipsRubbish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	before, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, w.release.Digest))
	if err != nil {
		t.Fatal(err)
	}
	rubbish := map[string]func(*ocispec.Manifest){
		"no layer":      func(m *ocispec.Manifest) { m.Layers = nil },
		"two layers":    func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) },
		"other layer":   func(m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" },
		"absent bundle": func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.FromString("absent") },
		"wrong size":    func(m *ocispec.Manifest) { m.Layers[0].Size++ },
		"huge bundle":   func(m *ocispec.Manifest) { m.Layers[0].Size = 5 << 20 },
		"huge config":   func(m *ocispec.Manifest) { m.Config.Size = 5 << 20 },
		"other data":    func(m *ocispec.Manifest) { m.Layers[0].Data = []byte("lie") },
		"no digest":     func(m *ocispec.Manifest) { m.Layers[0].Digest = "x" },
	}
	for _, change := range rubbish {
		changed(t, w, staging, ocispec.MediaTypeImageManifest, w.evidence[0], change)
	}
	changed(t, w, staging, ocispec.MediaTypeImageIndex, w.release.Digest, func(i *ocispec.Index) {
		i.Subject = &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: w.release.Digest, Size: w.release.Size}
	})
	after, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, w.release.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("evidence before and after rubbish:\n%s", diff)
	}
}

// A bundle attached without annotations, which cosign's readers do not need, is evidence.
func TestEvidenceWithoutAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	d := changed(t, w, staging, ocispec.MediaTypeImageManifest, w.evidence[0], func(m *ocispec.Manifest) { m.Annotations = nil })
	got, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, w.release.Digest))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(got, func(b evidence.Bundle) bool { return b.Digest == d })
	if at < 0 || got[at].PredicateType != "" || string(got[at].Data) != string(bundle(evidence.PredicateSign)) {
		t.Errorf("got %v", got)
	}
}

func TestPutEvidenceRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	good := w.release.Subjects()[:1]
	wrongSize := []artifact.Subject{{Name: "release", Digest: w.release.Digest, Size: 1, Index: true}}
	unknown := []artifact.Subject{{Name: "release", Digest: digest.FromString("x"), Size: 1, Index: true}}
	var unsigned map[string]any
	if err := json.Unmarshal(bundle("x"), &unsigned); err != nil {
		t.Fatal(err)
	}
	delete(unsigned, "dsseEnvelope")
	bare, _ := json.Marshal(unsigned)
	tests := []struct {
		name     string
		bundle   evidence.Bundle
		subjects []artifact.Subject
		code     registry.Code
	}{
		{"no JSON", evidence.Bundle{Data: []byte("x")}, good, registry.CodeInvalid},
		{"no envelope", evidence.Bundle{Data: bare}, good, registry.CodeInvalid},
		{"no predicate type", evidence.Bundle{Data: bundle("")}, good, registry.CodeInvalid},
		{"other predicate type", evidence.Bundle{Data: bundle("a"), PredicateType: "b"}, good, registry.CodeInvalid},
		{"too large", evidence.Bundle{Data: make([]byte, 5<<20)}, good, registry.CodeInvalid},
		{"later bundle", evidence.Bundle{Data: []byte(strings.Replace(string(bundle("a")), "v0.3", "v0.4", 1))}, good, registry.CodeInvalid},
		{"wrong size", evidence.Bundle{Data: bundle("a")}, wrongSize, registry.CodeInvalid},
		{"unknown subject", evidence.Bundle{Data: bundle("a")}, unknown, registry.CodeNotFound},
	}
	for _, test := range tests {
		_, err := w.store.PutEvidence(t.Context(), staging, test.bundle, test.subjects)
		if registry.CodeOf(err) != test.code {
			t.Errorf("%s: got %v, want %s", test.name, err, test.code)
		}
	}
}

// losing is a repository whose list of referrers forgets what came in last, some times.
type losing struct {
	oci.Repository
	left *int
}

func (l losing) Push(ctx context.Context, desc ocispec.Descriptor, from io.Reader) error {
	*l.left--
	return l.Repository.Push(ctx, desc, from)
}

func (l losing) Predecessors(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if *l.left > 0 {
		return nil, nil
	}
	return l.Repository.Predecessors(ctx, desc)
}

// Evidence that another client pushed out of the list of referrers is stored again, but
// not for ever.
func TestLostReferrerIsStoredAgain(t *testing.T) {
	t.Parallel()
	for left, code := range map[int]registry.Code{5: "", 1000: registry.CodeConflict} {
		w := newWorld(t, options{})
		store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
			return losing{oci.Local(w.blobs, w.refs, name), &left}, nil
		}, oci.Options{})
		subject := w.release.Subjects()[:1]
		_, err := store.PutEvidence(t.Context(), staging, evidence.Bundle{Data: bundle(evidence.PredicateApproval)}, subject)
		if code != "" {
			wantCode(t, err, code, "is not listed among the referrers of "+string(subject[0].Digest))
			continue
		}
		if err != nil || left > 0 {
			t.Errorf("error %v, and %d more would have been lost", err, left)
		}
	}
}

// Evidence that is there and in no list any more can be put back.
func TestReferrerThatLostItsPlace(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(containerregistry.New(containerregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	w := &world{parts: make(map[string]storage.PartRef)}
	w.store = oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		repo := remoteRepository(t, server.URL, name)
		repo.SkipReferrersGC = true
		return repo, nil
	}, oci.Options{})
	w.fill(t, options{})
	subject := w.release.Subjects()[:1]
	list := "sha256-" + subject[0].Digest.Encoded()
	empty := []byte(`{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageIndex + `","manifests":[]}`)
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(empty), Size: int64(len(empty))}
	if err := remoteRepository(t, server.URL, staging).PushReference(t.Context(), desc, bytes.NewReader(empty), list); err != nil {
		t.Fatal(err)
	}
	before, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, subject[0].Digest))
	if err != nil || len(before) != 0 {
		t.Fatalf("with an empty list there is the evidence %v, error %v", before, err)
	}
	if err := w.store.Relist(t.Context(), staging, w.evidence[0]); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.store.Relist(t.Context(), staging, digest.FromString("nowhere")), registry.CodeNotFound, staging)
	wantCode(t, w.store.Relist(t.Context(), staging, w.release.Limits), registry.CodeInvalid, "not a complete piece of evidence")
	after, err := registrytest.Bundles(w.store.Evidence(t.Context(), staging, subject[0].Digest))
	if err != nil || len(after) != 1 {
		t.Errorf("listed again there is the evidence %v, error %v", after, err)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	_, err := w.store.Tag(t.Context(), staging, "stable")
	wantCode(t, err, registry.CodeNotFound, staging, "stable")
	wantCode(t, w.store.SetTag(t.Context(), staging, "stable", digest.FromString("nowhere")), registry.CodeNotFound, staging)
	wantCode(t, w.store.SetTag(t.Context(), staging, "no tag", w.release.Digest), registry.CodeInvalid, staging)
	for _, d := range []registry.Digest{w.release.Digest, w.release.Engines[0].Digest} {
		if err := w.store.SetTag(t.Context(), staging, "stable", d); err != nil {
			t.Fatal(err)
		}
		if got, err := w.store.Tag(t.Context(), staging, "stable"); err != nil || got != d {
			t.Errorf("the tag names %s, error %v, want %s", got, err, d)
		}
	}
}
