package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// rejudged judges the stored report of an engine again, with the per-case figures and the limits that the registry has.
func (w *world) rejudged(t *testing.T, found verify.Result, e verify.VerifiedEngine) validators.Rejudged {
	t.Helper()
	claims, _, err := w.p.Registry.Claims(t.Context(), found.Ref.Environment, found.Release)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if c.Subject != e.Digest || c.Statement.PredicateType != evidence.PredicateParity {
			continue
		}
		var report evidence.ParityReport
		if err := registry.DecodeSigned(c.Statement.Predicate, &report); err != nil {
			t.Fatal(err)
		}
		b, err := w.p.Registry.Bundle(t.Context(), found.Ref.Environment, found.Release.Model, c.Bundle)
		if err != nil || len(b.Figures) == 0 {
			t.Fatalf("%s: %d bytes of per-case figures, error %v; want some", e.Label, len(b.Figures), err)
		}
		engine, _ := found.Release.Engine(e.Digest)
		again, err := validators.RejudgeWith(report, validators.Beside{Figures: b.Figures, Limits: w.limitsOf(t, found), Precision: engine.Precision})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	t.Fatalf("%s has no report", e.Label)
	return validators.Rejudged{}
}

// limitsOf reads the limits of a release.
func (w *world) limitsOf(t *testing.T, found verify.Result) *validators.Limits {
	t.Helper()
	dir := t.TempDir()
	part, err := w.p.Parts.Fetch(t.Context(), registry.Repository(found.Ref.Environment, found.Release.Model), found.Release.Limits, dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, part.Files[0].Path))
	if err != nil {
		t.Fatal(err)
	}
	limits, err := validators.ParseLimits(data)
	if err != nil {
		t.Fatal(err)
	}
	return &limits
}
