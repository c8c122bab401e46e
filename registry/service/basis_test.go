package service_test

import (
	"context"
	"strings"
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

// busy is a catalog in which something happens just before a change of a kind is applied.
type busy struct {
	storage.Catalog
	kind  history.EventKind
	times int // that it happens
	then  func()
}

func (b *busy) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if c.Event.Kind == b.kind && b.times > 0 {
		b.times--
		b.then()
	}
	return b.Catalog.Apply(ctx, c)
}

// What comes in between the decision and the move of the head counts: the promotion is
// decided again, and copies nothing twice.
func TestPromotionIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, w *world, next artifact.Release)
		says      string // of the refusal; empty: it is promoted
	}{
		"nothing that matters": {func(t *testing.T, w *world, _ artifact.Release) {
			w.Prove(t, w.Build(t, registrytest.Build{Version: "1.9.0", Salt: "z"}))
		}, ""},
		"a pass": {func(t *testing.T, w *world, next artifact.Release) {
			e := next.Engines[0]
			w.AttachTo(t, "staging", next, e.Digest, evidence.PredicateParity, registrytest.Report(next, e, evidence.VerdictPass))
		}, ""},
		"a failure": {func(t *testing.T, w *world, next artifact.Release) {
			e := next.Engines[0]
			w.AttachTo(t, "staging", next, e.Digest, evidence.PredicateParity, registrytest.Report(next, e, evidence.VerdictFail))
		}, `verdict is "fail"`},
		"a quarantine": {func(t *testing.T, w *world, next artifact.Release) {
			w.AttachTo(t, "staging", next, next.Digest, evidence.PredicateQuarantine, struct{}{})
		}, "quarantine"},
		"a restriction": {func(t *testing.T, w *world, next artifact.Release) {
			w.Restricting(t, "prod", registrytest.SourceOf(next), nil)
		}, "no-restriction of"},
		"a restriction elsewhere": {func(t *testing.T, w *world, next artifact.Release) {
			w.Restricting(t, "staging", registrytest.SourceOf(next), nil)
		}, ""},
		"a hold": {func(t *testing.T, w *world, _ artifact.Release) {
			must(t, w.SetHold(t.Context(), "prod", registrytest.Model, "the fair"))
		}, "held at 1.1.0: the fair"},
		"a rollback": {func(t *testing.T, w *world, _ artifact.Release) {
			_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow"})
			must(t, err)
		}, "held at 1.0.0: it is slow"},
		"a rollback, and back": {func(t *testing.T, w *world, _ artifact.Release) {
			for _, version := range []string{"1.0.0", "1.1.0"} {
				_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod",
					Model: registrytest.Model, Version: version, Reason: "to and fro"})
				must(t, err)
			}
		}, "held at 1.1.0: to and fro"},
		"another promotion": {func(t *testing.T, w *world, _ artifact.Release) {
			_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0", Downgrade: true})
			must(t, err)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, copies := &busy{kind: history.EventPromote}, &copying{hashed: make(map[registry.Digest]int)}
			w := setup(t, func(c *backend.Backend) {
				b.Catalog, c.Catalog = c.Catalog, b
				copies.Content, c.Content = c.Content, copies
			})
			w.Promoted(t, registrytest.Build{})
			w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			next := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
			b.times, b.then = 1, func() { c.meanwhile(t, w, next) }
			p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
			if b.times != 0 {
				t.Fatal("the promotion did not come to the head")
			}
			if copies.hashed[next.Digest] != 1 {
				t.Errorf("the release was hashed %d times, want once", copies.hashed[next.Digest])
			}
			w.chained(t)
			if len(w.pending(t)) != 0 {
				t.Errorf("the intents are %v, want none", w.pending(t))
			}
			if c.says == "" {
				if err != nil || w.head(t).Release != next.Digest {
					t.Errorf("head %s, error %v; want %s promoted", w.head(t).Version, err, next.Version)
				}
				w.whole(t)
				return
			}
			if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v (exit code %d), want 4 that says %q", err, registry.ExitCode(err), c.says)
			}
			if w.head(t).Release == next.Digest {
				t.Error("the head moved all the same")
			}
			w.allowedByNobody(t, next, p)
		})
	}
}

// allowedByNobody wants a refused release not to be resolved by its digest, if it is the
// evidence that speaks against it, and the error to name the summary that was attached.
func (w *world) allowedByNobody(t *testing.T, r artifact.Release, p api.Promotion) {
	t.Helper()
	if len(p.VSA) == 0 {
		t.Error("the promotion does not name the summary that it left")
	}
	if p.Decision.Allowed() {
		return
	}
	q := api.ResolveQuery{Environment: "prod", Model: r.Model, Version: string(r.Digest), Node: registrytest.Node("v1")}
	if answer, err := w.Resolve(t.Context(), q); err == nil {
		t.Errorf("resolve of what was refused gives %+v", answer.Ref)
	}
}

// copying counts how often releases are read.
type copying struct {
	storage.Content
	hashed map[registry.Digest]int
}

func (c *copying) Rehash(ctx context.Context, repository string, r artifact.Release) error {
	c.hashed[r.Digest]++
	return c.Content.Rehash(ctx, repository, r)
}

// A promotion whose basis moves again and again gives up, and has changed nothing.
func TestPromotionGivesUp(t *testing.T) {
	t.Parallel()
	b := &busy{kind: history.EventPromote, times: 100}
	w := setup(t, func(c *backend.Backend) { b.Catalog, c.Catalog = c.Catalog, b })
	r := w.proven(t, registrytest.Build{})
	b.then = func() {
		w.AttachTo(t, "staging", r, r.Engines[0].Digest, evidence.PredicateParity, w.Seeing(t, registrytest.Report(r, r.Engines[0], evidence.VerdictPass)))
	}
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.CodeOf(err) != registry.CodeConflict || len(registry.Hints(err)) == 0 || b.times != 95 || w.head(t).Release != "" {
		t.Errorf("error %v, hints %v after %d tries, head %v; want CodeConflict after 5, and no head", err, registry.Hints(err), 100-b.times, w.head(t))
	}
	b.times = 4
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != r.Digest {
		t.Errorf("the fifth try: error %v, head %v", err, w.head(t))
	}
	w.whole(t)
}

// What is asked of a head is not done to another one, or to another hold.
func TestRollbackAndReleaseMeanOneHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind history.EventKind
		ask  func(t *testing.T, w *world) error
	}{
		"rollback": {history.EventRollback, func(t *testing.T, w *world) error {
			_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "first"})
			return err
		}},
		"release of a hold": {history.EventHoldRelease, func(t *testing.T, w *world) error {
			must(t, w.SetHold(t.Context(), "prod", registrytest.Model, "the fair"))
			return w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "it is over"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &busy{kind: c.kind, times: 1}
			w := setup(t, func(c *backend.Backend) { b.Catalog, c.Catalog = c.Catalog, b })
			w.Promoted(t, registrytest.Build{})
			middle := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			w.Promoted(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
			b.then = func() {
				_, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: "1.1.0", Reason: "second"})
				must(t, err)
			}
			if err := c.ask(t, w); registry.CodeOf(err) != registry.CodeConflict || history.BasisOutdated(err) {
				t.Errorf("error %v, want CodeConflict that is not tried again", err)
			}
			if head := w.head(t); head.Release != middle.Digest || head.Hold != "second" {
				t.Errorf("the head is %+v, want it as the other operator left it", head)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
