package service_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// contents are the digests of everything that a release is made of: manifests,
// configs and files.
func contents(t *testing.T, w *world, r artifact.Release) []registry.Digest {
	t.Helper()
	found := []registry.Digest{r.Digest, r.Limits, r.Interface}
	for _, e := range r.Engines {
		found = append(found, e.Digest)
	}
	for _, manifest := range found[1:] {
		blob, _, err := w.blobs.Open(t.Context(), manifest)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(blob)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Config struct{ Digest registry.Digest }
			Layers []struct{ Digest registry.Digest }
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		found = append(found, m.Config.Digest)
		for _, layer := range m.Layers {
			found = append(found, layer.Digest)
		}
	}
	return found
}

func TestFlippedByteStopsPromotion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	for _, d := range contents(t, w, r) {
		w.blobs.flipped = d
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
		if !registry.HasCode(err, registry.CodeDigest) || registry.ExitCode(err) != 5 || !strings.Contains(err.Error(), string(d)) {
			t.Errorf("with %s changed: error %v, want CodeDigest that names it", d, err)
		}
		if h := w.head(t); h.Release != "" {
			t.Fatalf("with %s changed the head is %+v", d, h)
		}
	}
	w.blobs.flipped = ""
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != r.Digest {
		t.Errorf("with nothing changed: head %+v, error %v", w.head(t), err)
	}
}

func TestFlippedByteStopsRollback(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	for _, d := range contents(t, w, first) {
		w.blobs.flipped = d
		_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"})
		if !registry.HasCode(err, registry.CodeDigest) || w.head(t).Release != second.Digest {
			t.Errorf("with %s changed: head %s, error %v, want CodeDigest", d, w.head(t).Release, err)
		}
	}
}

// All that speaks against a promotion is said at once, and the gravest decides.
func TestEveryReasonIsSaid(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow"}); err != nil {
		t.Fatal(err)
	}
	other := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "c"})
	all := contents(t, w, other)
	w.blobs.flipped = all[len(all)-1]
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.ExitCode(err) != 5 {
		t.Errorf("exit code %d, want 5", registry.ExitCode(err))
	}
	for _, says := range []string{string(w.blobs.flipped), "parity of", "it is slow", "choose a new version"} {
		if strings.Count(err.Error(), says) == 0 {
			t.Errorf("nothing is said of %q: %v", says, err)
		}
	}
	if hints := strings.Join(registry.Hints(err), "\n"); !strings.Contains(hints, "hold release") || !strings.Contains(hints, "backup") {
		t.Errorf("hints are %q", hints)
	}
}

func TestEvidenceThatIsGoneStopsPromotion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	gone := w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateApproval, approved())
	w.refs.lost = map[registry.Digest]bool{gone: true}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.ExitCode(err) != 4 || !registry.HasCode(err, registry.CodePolicy) || !strings.Contains(err.Error(), string(gone)) {
		t.Errorf("error %v, want CodePolicy that names %s", err, gone)
	}
	if !p.Decision.Allowed() || w.head(t).Release != "" {
		t.Errorf("the decision is %+v and the head %+v: want only what is gone to stand in the way", p.Decision.Unmet(), w.head(t))
	}
	w.refs.lost = nil
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
		t.Errorf("with the evidence back: error %v", err)
	}
}

// Evidence about another release of the model does not matter.
func TestEvidenceOfOthersMayBeGone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.proven(t, registrytest.Build{})
	gone := w.AttachTo(t, "staging", other, other.Digest, evidence.PredicateApproval, approved())
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.refs.lost = map[registry.Digest]bool{gone: true}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
		t.Error(err)
	}
}

func TestSummaryThatIsGoneStopsResolveAndRollback(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	r := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil {
		t.Fatal(err)
	}
	w.refs.lost = make(map[registry.Digest]bool)
	for _, d := range p.VSA {
		w.refs.lost[d] = true
	}
	q := api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v3")}
	answer, err := w.Resolve(t.Context(), q)
	if registry.CodeOf(err) != registry.CodePolicy || answer.Engine != nil || !strings.Contains(err.Error(), "verification summary") {
		t.Errorf("resolve gives %+v, error %v, want CodePolicy", answer, err)
	}
	q.Version = "1.0.0"
	if answer, err := w.Resolve(t.Context(), q); err != nil || answer.Version != "1.0.0" {
		t.Errorf("resolve of the version before gives %+v, error %v", answer, err)
	}
	third := w.Promoted(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	_, err = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"})
	if registry.CodeOf(err) != registry.CodePolicy || w.head(t).Release != third.Digest {
		t.Errorf("rollback to %s: head %+v, error %v, want CodePolicy", r.Tag(), w.head(t), err)
	}
}

// A quarantine that came in at the destination counts, though its repository lost it.
func TestEvidenceThatIsGoneAtTheDestination(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	gone := w.AttachTo(t, "prod", first, first.Digest, evidence.PredicateQuarantine, struct{}{})
	w.refs.lost = map[registry.Digest]bool{gone: true}
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0"})
	if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "in quarantine") || w.head(t).Release != second.Digest {
		t.Errorf("head %s, error %v, want CodePolicy for the quarantine", w.head(t).Version, err)
	}
}

// A tag of a protected environment that names something else is never moved.
func TestProtectedTagsDoNotMove(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	const tag = "1.1.0.linux-amd64-v3.int8"
	if err := w.db.SetTag(t.Context(), "prod/"+registrytest.Model, tag, first.Engines[0].Digest); err != nil {
		t.Fatal(err)
	}
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.CodeOf(err) != registry.CodeConflict || !strings.Contains(err.Error(), tag) {
		t.Errorf("error %v, want CodeConflict that names the tag", err)
	}
	w.whole(t)
	if d, err := w.db.Tag(t.Context(), "prod/"+registrytest.Model, tag); err != nil ||
		d != first.Engines[0].Digest || w.head(t).Release != first.Digest {
		t.Errorf("the tag names %s, error %v, and the head is %+v", d, err, w.head(t))
	}
}
