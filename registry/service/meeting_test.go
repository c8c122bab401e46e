package service_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// between is parts of a service between whose calls something happens, once.
type between struct{ atRehash, afterHeadTag, atPending func() }

// once does something the first time.
func once(do *func()) {
	if then := *do; then != nil {
		*do = nil
		then()
	}
}

type betweenContent struct {
	storage.Content
	*between
}

func (c betweenContent) Rehash(ctx context.Context, repository string, r artifact.Release) error {
	once(&c.atRehash)
	return c.Content.Rehash(ctx, repository, r)
}

type betweenMirror struct {
	backend.Mirror
	*between
}

func (m betweenMirror) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	err := m.Mirror.SetTag(ctx, repository, tag, d)
	if tag == artifact.HeadTag {
		once(&m.afterHeadTag)
	}
	return err
}

type betweenIntents struct {
	storage.Intents
	*between
}

func (i betweenIntents) Pending(ctx context.Context) ([]history.Intent, error) {
	once(&i.atPending)
	return i.Intents.Pending(ctx)
}

// interrupted is a world with something to come in between, with 1.0.0 and then 1.1.0 in prod.
func interrupted(t *testing.T, edits ...func(*backend.Backend)) (*world, *between) {
	t.Helper()
	b := new(between)
	w := setup(t, append(edits, func(c *backend.Backend) {
		c.Content, c.Mirror, c.Intents = betweenContent{c.Content, b}, betweenMirror{c.Mirror, b}, betweenIntents{c.Intents, b}
	})...)
	w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	return w, b
}

func (w *world) rollback(t *testing.T, version string) (api.Promotion, error) {
	t.Helper()
	return w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: version, Reason: "it is slow"})
}

// settled wants no intent to be left, and the mirror to be that of the head.
func (w *world) settled(t *testing.T) {
	t.Helper()
	if left := w.pending(t); len(left) > 0 {
		t.Errorf("the intents %v are left, want none", left)
	}
	if r, err := w.Release(t.Context(), "prod", registrytest.Model, ""); err != nil || !w.mirrorMatches(t, "prod", r) {
		t.Errorf("the mirror is not that of the head %s (%v)", r.Tag(), err)
	}
}

// A promotion that moved the head has succeeded, also if the head went on to another release
// while its tags were written.
func TestPromotionSucceedsThoughTheHeadWentOn(t *testing.T) {
	t.Parallel()
	w, b := interrupted(t, external("prod"))
	next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	b.afterHeadTag = func() {
		_, err := w.rollback(t, "1.0.0")
		must(t, err)
	}
	p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err != nil || p.Release != next.Digest {
		t.Errorf("promotion of %s, error %v; want %s and none", p.Version, err, next.Version)
	}
	if head := w.head(t); head.Version != "1.0.0" {
		t.Errorf("the head is %s, want 1.0.0, where the rollback moved it", head.Version)
	}
	w.settled(t)
}

// A promotion that is refused after it was announced leaves no intent, which would say for a
// day that it is under way.
func TestRefusedPromotionLeavesNoIntent(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){"here": nil, "elsewhere": {external("prod")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply := &busy{kind: history.EventPromote}
			w, _ := interrupted(t, append(edits, func(c *backend.Backend) { apply.Catalog, c.Catalog = c.Catalog, apply })...)
			w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
			apply.times, apply.then = 1, func() { must(t, w.SetHold(t.Context(), "prod", registrytest.Model, "the fair")) }
			if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.CodeOf(err) != registry.CodePolicy {
				t.Errorf("error %v, want CodePolicy", err)
			}
			if left := w.pending(t); len(left) > 0 {
				t.Errorf("the intents %v are left, want none", left)
			}
		})
	}
}

// A promotion that gives up, since something changes all the time, leaves no intent either.
func TestPromotionThatGivesUpLeavesNoIntent(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){"here": nil, "elsewhere": {external("prod")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply := &busy{kind: history.EventPromote}
			w, _ := interrupted(t, append(edits, func(c *backend.Backend) { apply.Catalog, c.Catalog = c.Catalog, apply })...)
			next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
			e := next.Engines[0]
			apply.times, apply.then = 5, func() {
				w.AttachTo(t, "staging", next, e.Digest, evidence.PredicateParity, w.Seeing(t, registrytest.Report(next, e, evidence.VerdictPass)))
			}
			if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); !history.BasisOutdated(err) {
				t.Errorf("error %v, want one that says that the basis moved", err)
			}
			if left := w.pending(t); len(left) > 0 {
				t.Errorf("the intents %v are left, want none", left)
			}
		})
	}
}

// A rollback that finishes another one says where that went, and not where the head was
// before.
func TestRollbackNamesTheHeadThatItFinished(t *testing.T) {
	t.Parallel()
	broken := &switchedMirror{}
	w, b := interrupted(t, external("prod"), func(c *backend.Backend) { broken.Mirror, c.Mirror = c.Mirror, broken })
	b.atPending = func() {
		broken.off = true
		if _, err := w.rollback(t, ""); registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("the first rollback: error %v, want CodeUnavailable", err)
		}
		broken.off = false
	}
	p, err := w.rollback(t, "")
	if err != nil || !p.Unchanged || p.Version != "1.0.0" || p.Release != w.head(t).Release {
		t.Errorf("the second rollback: %+v, error %v; want 1.0.0, already", p, err)
	}
	w.settled(t)
}

// A rollback that loses to a promotion of the same release leaves no intent: the next
// rollback would take it for one that broke off, and do nothing.
func TestRollbackThatLosesLeavesNoIntent(t *testing.T) {
	t.Parallel()
	w, b := interrupted(t, external("prod"))
	b.atRehash = func() {
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0", Downgrade: true})
		must(t, err)
	}
	if _, err := w.rollback(t, ""); registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("the rollback that lost: error %v, want CodeConflict", err)
	}
	w.settled(t)
	if p, err := w.rollback(t, ""); err != nil || p.Unchanged || p.Version != "1.1.0" {
		t.Errorf("the next rollback: %+v, error %v; want 1.1.0, where the head was before", p, err)
	}
}

// Evidence that comes in after the evidence was read and before the history was is not
// missing: it is read when the promotion is decided again.
func TestEvidenceThatComesMeanwhileIsNotMissing(t *testing.T) {
	t.Parallel()
	w, b := interrupted(t)
	next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	e := next.Engines[0]
	b.atRehash = func() {
		w.AttachTo(t, "staging", next, e.Digest, evidence.PredicateParity, w.Seeing(t, registrytest.Report(next, e, evidence.VerdictPass)))
	}
	if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || p.Release != next.Digest {
		t.Errorf("promotion of %s, error %v; want %s and none", p.Version, err, next.Version)
	}
	w.whole(t)
}
