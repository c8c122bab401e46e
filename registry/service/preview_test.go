package service_test

import (
	"context"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A preview says what a dry run says, costs no verification while nothing happens, and is decided again after each event
// that could change it: in either environment, and of restrictions.
func TestPreview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var verified atomic.Int64
	s := w.replica(t, 4<<20, &verified)
	request := api.PromoteRequest{Model: registrytest.Model}
	same := func(when string, allowed bool) {
		t.Helper()
		want, refused := w.service.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, DryRun: true})
		got, err := s.Preview(t.Context(), request)
		if registry.CodeOf(err) != registry.CodeOf(refused) || (err == nil) != (refused == nil) ||
			len(got.Decision.Requirements) != len(want.Decision.Requirements) ||
			got.Decision.Allowed() != want.Decision.Allowed() || (err == nil) != allowed {
			t.Errorf("%s: got a preview that allows %v, error %v; a dry run allows %v, error %v; want %v",
				when, got.Decision.Allowed(), err, want.Decision.Allowed(), refused, allowed)
		}
		before := verified.Load()
		if _, again := s.Preview(t.Context(), request); registry.CodeOf(again) != registry.CodeOf(err) || verified.Load() != before {
			t.Errorf("%s: the same preview verified %d bundles and has error %v, want it from memory", when, verified.Load()-before, again)
		}
	}
	release := w.Build(t, registrytest.Build{})
	same("unproven", false)
	w.Prove(t, release)
	same("proven", true)
	w.AttachTo(t, "staging", release, release.Engines[0].Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "x"})
	same("in quarantine", false)

	if heads, err := w.service.Heads(t.Context(), "prod", registrytest.Model); err != nil || len(heads) != 0 {
		t.Errorf("prod has %d heads after previews, error %v; want none", len(heads), err)
	}
}

// A request that asks to skip requirements gets the decision without skipping.
func TestPreviewSkipsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Build(t, registrytest.Build{})
	s := w.replica(t, 4<<20, new(atomic.Int64))
	p, err := s.Preview(t.Context(), api.PromoteRequest{Model: registrytest.Model, BreakGlass: true})
	if registry.CodeOf(err) != registry.CodePolicy || p.Decision.Skipped != nil {
		t.Errorf("got error %v and skipped %v, want a refusal that skips nothing", err, p.Decision.Skipped)
	}
}

// A preview that rests on node types is decided again when they change, which makes no event.
func TestPreviewFollowsNodeTypes(t *testing.T) {
	t.Parallel()
	w := covered(t)
	w.proven(t, registrytest.Build{})
	s := w.replica(t, 4<<20, new(atomic.Int64))
	for _, c := range []struct {
		now     string
		node    string
		allowed bool
	}{{"the machine of the report", "v4", true}, {"another machine", "v3", false}, {"that machine again", "v4", true}} {
		must(t, w.db.NodeTypes().Put(t.Context(), "box", registrytest.Node(c.node)))
		if p, err := s.Preview(t.Context(), api.PromoteRequest{Model: registrytest.Model}); p.Decision.Allowed() != c.allowed ||
			(err == nil) != c.allowed {
			t.Errorf("%s: got a preview that allows %v, error %v; want %v", c.now, p.Decision.Allowed(), err, c.allowed)
		}
	}
}

// unreadable has content whose bytes cannot be read.
type unreadable struct{ storage.Content }

func (unreadable) Rehash(context.Context, string, artifact.Release) error {
	return registry.Errorf(registry.CodeDigest, "the bytes were read")
}

// A preview of a rollback says where it goes and refuses what a rollback refuses, and reads no bytes; the rollback does.
func TestPreviewRollback(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.config.Content = unreadable{w.config.Content}
	s := w.replica(t, 1<<20, new(atomic.Int64))
	request := api.RollbackRequest{Environment: "prod", Model: registrytest.Model}
	if p, err := s.PreviewRollback(t.Context(), request); err != nil || p.Release != first.Digest || p.Previous != second.Digest {
		t.Errorf("got a preview to %s from %s, error %v; want 1.0.0 from 1.1.0", p.Version, p.Previous, err)
	}
	request.Reason = "it is slow"
	if _, err := s.Rollback(t.Context(), request); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("a rollback without a look at the bytes: error %v", err)
	}
	w.AttachTo(t, "prod", first, first.Engines[0].Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "x"})
	if _, err := s.PreviewRollback(t.Context(), request); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("to what is in quarantine: error %v, want a refusal", err)
	}
	heads, err := w.service.Heads(t.Context(), "prod", registrytest.Model)
	if err != nil || len(heads) != 1 || heads[0].Release != second.Digest || heads[0].Hold != "" {
		t.Errorf("after previews prod has %+v, error %v; want 1.1.0 without a hold", heads, err)
	}
}
