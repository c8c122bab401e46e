package registrytest

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// testAttachFigures: per-case figures are stored with the report that names them, wherever it goes. Others
// are refused.
func testAttachFigures(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	r.Prove(t, release)
	e := release.Engines[0]
	figures := bytes.Repeat([]byte("figures "), 1000)
	named := r.Seeing(t, Report(release, e, evidence.VerdictPass))
	named.CaseFigures = evidence.NameCaseFigures(figures, "")
	unnamed := r.Seeing(t, Report(release, e, evidence.VerdictPass))
	attach := func(report any, predicateType string, key string, figures []byte) (registry.Digest, error) {
		return r.Attach(t.Context(), api.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: e.Digest,
			Bundle: r.Bundle(t, key, predicateType, report, e.Digest), Figures: figures})
	}
	for name, c := range map[string]struct {
		report             any
		predicateType, key string
		figures            []byte
		code               registry.Code
	}{
		"others":                {named, evidence.PredicateParity, "verifier", figures[1:], registry.CodeDigest},
		"other bytes":           {named, evidence.PredicateParity, "verifier", append([]byte("F"), figures[1:]...), registry.CodeDigest},
		"those of no report":    {struct{}{}, evidence.PredicateSign, "builder", figures, registry.CodeInvalid},
		"those that none names": {unnamed, evidence.PredicateParity, "verifier", figures, registry.CodeInvalid},
	} {
		if _, err := attach(c.report, c.predicateType, c.key, c.figures); registry.CodeOf(err) != c.code || err == nil {
			t.Errorf("figures that are %s: error %v, want code %s", name, err, c.code)
		}
	}
	has := func(environment string, d registry.Digest, want []byte) {
		t.Helper()
		b, err := r.Interface.Bundle(t.Context(), environment, Model, d)
		if err != nil || !bytes.Equal(b.Figures, want) {
			t.Errorf("%s: evidence has %d bytes of figures, error %v; want %d", environment, len(b.Figures), err, len(want))
		}
	}
	first, err := attach(named, evidence.PredicateParity, "verifier", figures)
	must(t, err)
	has("staging", first, figures)
	_, err = r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	has("prod", first, figures)
	second := r.Seeing(t, named)
	last, err := attach(second, evidence.PredicateParity, "verifier", figures) // comes to prod at once
	must(t, err)
	has("prod", last, figures)
	without, err := attach(r.Seeing(t, named), evidence.PredicateParity, "verifier", nil) // as of an earlier client
	must(t, err)
	has("staging", without, nil)
}
