package service_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// late is a catalog that something happens to just before it moves a head to a promoted
// release.
type late struct {
	storage.Catalog
	do func()
}

func (l *late) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if do := l.do; do != nil && c.Event.Kind == history.EventPromote {
		l.do = nil
		do()
	}
	return l.Catalog.Apply(ctx, c)
}

// during makes a promotion do something just before its last step.
func during(t *testing.T, do func(w *world)) *world {
	t.Helper()
	w := setup(t)
	w.config.Catalog = &late{w.config.Catalog, func() { do(w) }}
	w.serve(t)
	return w
}

// inProd decides about all that prod holds.
func (w *world) inProd(t *testing.T, decide func(keys []storage.GCRecordKey) storage.GCChanges) {
	t.Helper()
	err := w.db.UpdateRecords(t.Context(), "prod/"+registrytest.Model, func(held []storage.GCRecord) (storage.GCChanges, error) {
		var keys []storage.GCRecordKey
		for _, h := range held {
			keys = append(keys, h.Key())
		}
		return decide(keys), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A promotion that stood still for longer than a collector waits moves no head to what was
// collected meanwhile. The next one does it all again.
func TestPromotionOfWhatWasCollected(t *testing.T) {
	t.Parallel()
	w := during(t, func(w *world) {
		w.inProd(t, func(keys []storage.GCRecordKey) storage.GCChanges { return storage.GCChanges{Delete: keys} })
	})
	r := w.proven(t, registrytest.Build{})
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if registry.CodeOf(err) != registry.CodeConflict || w.head(t).Release != "" {
		t.Fatalf("error %v and head %q, want CodeConflict and none", err, w.head(t).Release)
	}
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil || w.head(t).Release != r.Digest {
		t.Errorf("the next: error %v and head %q, want %q", err, w.head(t).Release, r.Digest)
	}
	w.whole(t)
	if err := w.config.Content.Rehash(t.Context(), "prod/"+registrytest.Model, r); err != nil {
		t.Error(err)
	}
}

// What a promotion names is asked for in its last step, so that a collector which found it
// to be garbage before finds that somebody wants it.
func TestPromotionRescinds(t *testing.T) {
	t.Parallel()
	w := during(t, func(w *world) {
		w.inProd(t, func(keys []storage.GCRecordKey) storage.GCChanges {
			return storage.GCChanges{At: time.Now().Add(-days), Mark: keys}
		})
	})
	r := w.Promoted(t, registrytest.Build{})
	held, err := w.db.Records(t.Context(), "prod/"+registrytest.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range held {
		if h.Digest == r.Digest && !h.Marked.IsZero() {
			t.Error("the release at the head is marked")
		}
	}
}

// The intent of a promotion that broke off keeps content for a day, by the clock of the
// catalog, and not after its environment is gone.
func TestCollectAbandonsIntents(t *testing.T) {
	t.Parallel()
	gone := func(c *gc.Config) {
		c.Environments.List = slices.DeleteFunc(slices.Clone(c.Environments.List), func(e policy.Environment) bool { return e.Name == "prod" })
	}
	for name, c := range map[string]struct {
		in    time.Duration
		edit  func(*gc.Config)
		moved bool
		want  int // intents that are left
	}{
		"young":                            {23 * time.Hour, alone, false, 1},
		"old":                              {25 * time.Hour, alone, false, 0},
		"young, of no environment":         {time.Hour, gone, false, 0},
		"old, and its mirror is unwritten": {999 * days, alone, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			r := w.proven(t, registrytest.Build{})
			if c.moved {
				if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.db.Begin(t.Context(), history.Intent{Environment: "prod",
				Model: registrytest.Model, From: "staging", Release: r.Digest}); err != nil {
				t.Fatal(err)
			}
			w.proven(t, registrytest.Build{Salt: "b"}) // staging and its tags move on
			collector := w.collector(t, c.in, alone, c.edit)
			if _, err := collector.Plan(t.Context()); err != nil || len(w.pending(t)) != 1 {
				t.Fatalf("a plan leaves %d intents (%v), want 1", len(w.pending(t)), err)
			}
			did := collect(t, collector)
			if left := len(w.pending(t)); left != c.want || did.Intents != 1-c.want {
				t.Errorf("%d intents are left, and %d were forgotten; want %d", left, did.Intents, c.want)
			}
			collect(t, w.collector(t, 2*days, alone, c.edit))
			_, err := w.Release(t.Context(), "staging", registrytest.Model, string(r.Digest))
			if there := err == nil; there != c.moved {
				t.Errorf("the release is there: %t (%v)", there, err)
			}
		})
	}
}
