package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// copies puts the bundle of a manifest into so many others, as anybody who may push can.
func (w *world) copies(t *testing.T, repository string, of registry.Digest, n int) []registry.Digest {
	t.Helper()
	local := oci.Local(w.blobs, w.refs, repository)
	desc, err := local.Resolve(t.Context(), string(of))
	if err != nil {
		t.Fatal(err)
	}
	rc, err := local.Fetch(t.Context(), desc)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var m ocispec.Manifest
	if err := json.NewDecoder(rc).Decode(&m); err != nil {
		t.Fatal(err)
	}
	var made []registry.Digest
	for i := range n {
		m.Annotations = map[string]string{"copy": fmt.Sprint(i)}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		record := storage.Manifest{Digest: digest.FromBytes(raw), MediaType: m.MediaType,
			Size: int64(len(raw)), Derived: artifact.Derived{Subject: m.Subject.Digest}}
		if err := w.blobs.Put(t.Context(), record.Digest, record.Size, bytes.NewReader(raw)); err != nil {
			t.Fatal(err)
		}
		if err := w.refs.PutManifest(t.Context(), repository, record); err != nil {
			t.Fatal(err)
		}
		made = append(made, record.Digest)
	}
	return made
}

// A bundle that somebody else put into more manifests counts once: as the history names it,
// else as it is.
func TestCopiesOfEvidenceCountOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	const repository = "staging/" + registrytest.Model
	before, _, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := w.config.Content.PutEvidence(t.Context(), repository,
		evidence.Bundle{Data: w.Bundle(t, "approver", evidence.PredicateApproval, struct{}{}, r.Digest)}, r.Subjects()[:1])
	if err != nil {
		t.Fatal(err)
	}
	n := len(w.copies(t, repository, before[0].Bundle, 40)) + len(w.copies(t, repository, pushed[0], 50))
	after, ignored, err := w.Claims(t.Context(), "staging", r)
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before)+1 || ignored.IgnoredCount != n || len(ignored.Ignored) != evidence.MaxIgnored {
		t.Errorf("%d claims, %d ignored and %d of them described; want %d, %d and %d", len(after),
			ignored.IgnoredCount, len(ignored.Ignored), len(before)+1, n, evidence.MaxIgnored)
	}
	for _, c := range before {
		if !slices.ContainsFunc(after, func(a evidence.Claim) bool { return a.Bundle == c.Bundle }) {
			t.Errorf("%s %s, which the history names, does not count any more", c.Statement.PredicateType, c.Bundle)
		}
	}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil || p.Decision.IgnoredCount != n {
		t.Fatalf("promote: %d ignored, error %v, want %d and none", p.Decision.IgnoredCount, err, n)
	}
	there, ignored, err := w.Claims(t.Context(), "prod", r)
	if err != nil || len(there) != len(after)+len(p.VSA) || ignored.IgnoredCount != 0 {
		t.Errorf("in prod: %d claims, %d ignored, error %v, want %d, 0 and none", len(there), ignored.IgnoredCount, err, len(after)+len(p.VSA))
	}
}
