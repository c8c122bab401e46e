package service_test

import (
	"context"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
)

// guard keeps what is relied on in a world.
func (w *world) guard() service.Guard {
	return service.Guard{
		Deleter: w.db, Environments: w.config.Environments, Manifests: w.db, Catalog: w.db, Records: w.db, Content: w.config.Content, Verify: w.config.Verify,
	}
}

// Evidence that no trusted key signed and that the history does not name may be deleted while
// its subject is there; all other evidence may not.
func TestGuardLetsJunkGo(t *testing.T) {
	t.Parallel()
	w := setup(t, resources(evidence.RoleApprover, "oci://local/prod/"))
	r := w.Promoted(t, registrytest.Build{})
	const repository = "staging/" + registrytest.Model
	put := func(data []byte) registry.Digest {
		t.Helper()
		stored, err := w.config.Content.PutEvidence(t.Context(), repository, evidence.Bundle{Data: data}, r.Subjects()[:1])
		if err != nil {
			t.Fatal(err)
		}
		return stored[0]
	}
	stranger := put(w.Bundle(t, registrytest.Stranger, evidence.PredicateQuarantine, struct{}{}, r.Digest))
	named := put(w.Bundle(t, registrytest.Stranger, evidence.PredicateParity, struct{}{}, r.Digest))
	elsewhere := put(w.Bundle(t, string(evidence.RoleApprover), evidence.PredicateQuarantine, struct{}{}, r.Digest))
	wrongRole := put(w.Bundle(t, string(evidence.RoleBuilder), evidence.PredicateQuarantine, struct{}{}, r.Digest))
	other := storage.Manifest{Digest: digest.FromString("of materials"), MediaType: "application/vnd.oci.image.manifest.v1+json",
		Derived: artifact.Derived{Subject: r.Digest, ArtifactType: "text/plain"}}
	if err := w.db.PutManifest(t.Context(), repository, other); err != nil {
		t.Fatal(err)
	}
	event := history.Event{Kind: history.EventAttach, Environment: "staging", Model: r.Model, Subject: r.Digest, Evidence: []registry.Digest{named}}
	if _, err := w.db.Apply(t.Context(), storage.Change{Event: event}); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		digest registry.Digest
		goes   bool
	}{
		"a stranger's":                         {stranger, true},
		"a stranger's that the history names":  {named, false},
		"signed by a key that prod trusts":     {elsewhere, false},
		"signed by a trusted key out of place": {wrongRole, false},
		"no evidence at all":                   {other.Digest, true},
	} {
		err := w.guard().DeleteManifest(t.Context(), repository, c.digest)
		if c.goes && err != nil || !c.goes && registry.CodeOf(err) != registry.CodePolicy {
			t.Errorf("%s: got error %v, want it to go: %t", what, err, c.goes)
		}
	}
	if err := w.guard().DeleteManifest(t.Context(), repository, r.Digest); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("the release: got error %v, want CodePolicy", err)
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	guard := w.guard()
	const repository = "staging/" + registrytest.Model
	evidence, err := w.db.Referrers(t.Context(), repository, r.Engines[0].Digest, "", "")
	if err != nil || len(evidence) == 0 {
		t.Fatalf("no evidence: %v", err)
	}
	refused := map[string]func() error{
		"release":   func() error { return guard.DeleteManifest(t.Context(), repository, r.Digest) },
		"engine":    func() error { return guard.DeleteManifest(t.Context(), repository, r.Engines[0].Digest) },
		"image":     func() error { return guard.DeleteManifest(t.Context(), repository, r.Engines[0].Image.Digest) },
		"limits":    func() error { return guard.DeleteManifest(t.Context(), repository, r.Limits) },
		"evidence":  func() error { return guard.DeleteManifest(t.Context(), repository, evidence[0].Digest) },
		"head tag":  func() error { return guard.DeleteTag(t.Context(), repository, artifact.HeadTag) },
		"version":   func() error { return guard.DeleteTag(t.Context(), repository, r.Tag()) },
		"any bytes": func() error { return guard.RemoveBlob(t.Context(), repository, r.Digest) },
	}
	for name, remove := range refused {
		if err := remove(); !registry.HasCode(err, registry.CodePolicy) {
			t.Errorf("%s: got %v, want it refused by policy", name, err)
		}
	}
	if err := w.db.SetTag(t.Context(), repository, "mine", r.Digest); err != nil {
		t.Fatal(err)
	}
	if err := guard.DeleteTag(t.Context(), repository, "mine"); err != nil {
		t.Errorf("a tag of nobody's: %v", err)
	}
	if err := guard.DeleteManifest(t.Context(), repository,
		"sha256:0000000000000000000000000000000000000000000000000000000000000000"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("what is not there: got %v, want not found", err)
	}
}

// Evidence that cannot be checked now may be of a trusted key, so it stays.
func TestGuardKeepsWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	const repository = "staging/" + registrytest.Model
	bundle := w.Bundle(t, registrytest.Stranger, evidence.PredicateQuarantine, struct{}{}, r.Digest)
	stored, err := w.config.Content.PutEvidence(t.Context(), repository, evidence.Bundle{Data: bundle}, r.Subjects()[:1])
	must(t, err)
	guard := w.guard()
	guard.Verify = func(context.Context, []byte, string) (evidence.Claim, error) {
		return evidence.Claim{}, registry.Errorf(registry.CodeUnavailable, "the key store is away")
	}
	if err := guard.DeleteManifest(t.Context(), repository, stored[0]); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
	if _, err := w.db.Manifest(t.Context(), repository, stored[0]); err != nil {
		t.Errorf("the evidence is gone: %v", err)
	}
	must(t, w.guard().DeleteManifest(t.Context(), repository, stored[0]))
}
