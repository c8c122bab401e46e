package service_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Per-case figures stay as long as the report that names them: at a head, and of a release that was built
// again and whose engines are gone.
func TestCollectKeepsFigures(t *testing.T) {
	t.Parallel()
	w := setup(t)
	attached := func(b registrytest.Build, figures []byte) registry.Digest {
		t.Helper()
		release := w.proven(t, b)
		e := release.Engines[0]
		report := w.Seeing(t, registrytest.Report(release, e, evidence.VerdictPass))
		report.CaseFigures = evidence.NameCaseFigures(figures, "")
		d, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: registrytest.Model, Release: release.Digest, Subject: e.Digest,
			Bundle: w.Registry.Bundle(t, "verifier", evidence.PredicateParity, report, e.Digest), Figures: figures})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	wants := func(environment string, d registry.Digest, figures []byte) {
		t.Helper()
		b, err := w.Interface.Bundle(t.Context(), environment, registrytest.Model, d)
		if err != nil || !bytes.Equal(b.Figures, figures) {
			t.Errorf("%s: %d bytes of figures, error %v; want %d", environment, len(b.Figures), err, len(figures))
		}
	}
	replaced, promoted := bytes.Repeat([]byte{1}, 3000), bytes.Repeat([]byte{2}, 3000)
	old := attached(registrytest.Build{}, replaced)
	next := attached(registrytest.Build{Salt: "b"}, promoted)
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
		t.Fatal(err)
	}
	if did := collect(t, w.collector(t, 2*days, alone)); did.Blobs == 0 {
		t.Fatalf("collected %+v, want what was built again", did)
	}
	collect(t, w.collector(t, 3000*days, alone))
	wants("staging", old, replaced)
	wants("staging", next, promoted)
	wants("prod", next, promoted)
	w.whole(t)
}
