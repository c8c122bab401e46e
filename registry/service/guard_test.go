package service_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	guard := service.Guard{Deleter: w.db, Manifests: w.db, Catalog: w.db, Content: w.Parts.(registry.Content)}
	const repository = "staging/" + registrytest.Model
	evidence, err := w.db.Referrers(t.Context(), repository, r.Engines[0].Digest, "")
	if err != nil || len(evidence) == 0 {
		t.Fatalf("no evidence: %v", err)
	}
	refused := map[string]func() error{
		"release":   func() error { return guard.DeleteManifest(t.Context(), repository, r.Digest) },
		"engine":    func() error { return guard.DeleteManifest(t.Context(), repository, r.Engines[0].Digest) },
		"limits":    func() error { return guard.DeleteManifest(t.Context(), repository, r.Limits) },
		"evidence":  func() error { return guard.DeleteManifest(t.Context(), repository, evidence[0].Digest) },
		"head tag":  func() error { return guard.DeleteTag(t.Context(), repository, registry.HeadTag) },
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
	if err := guard.DeleteManifest(t.Context(), repository, "sha256:0000000000000000000000000000000000000000000000000000000000000000"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("what is not there: got %v, want not found", err)
	}
}
