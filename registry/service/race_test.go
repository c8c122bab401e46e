package service_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// meeting is a catalog in which the first two promotions wait for one another before they
// are applied.
type meeting struct {
	storage.Catalog
	calls *atomic.Int32
	all   *sync.WaitGroup
}

func (m meeting) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if c.Event.Kind == history.EventPromote && m.calls.Add(1) <= 2 {
		m.all.Done()
		m.all.Wait()
	}
	return m.Catalog.Apply(ctx, c)
}

// The one that loses is decided again: of two releases it comes second, and of one it finds
// done what it was asked for.
func TestTwoPromotionsAtOnce(t *testing.T) {
	t.Parallel()
	for name, references := range map[string][]string{"of two releases": {"1.0.0", "1.1.0"}, "of one release": {"1.1.0", "1.1.0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			all.Add(len(references))
			w := setup(t, func(c *backend.Backend) { c.Catalog = meeting{c.Catalog, new(atomic.Int32), &all} })
			w.proven(t, registrytest.Build{})
			w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			promotions, errs := make([]api.Promotion, len(references)), make([]error, len(references))
			var done sync.WaitGroup
			for i, reference := range references {
				done.Go(func() {
					promotions[i], errs[i] = w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: reference, Downgrade: true})
				})
			}
			done.Wait()
			if errs[0] != nil || errs[1] != nil {
				t.Fatalf("errors %v, want none", errs)
			}
			events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
			if err != nil {
				t.Fatal(err)
			}
			if name == "of one release" {
				if promotions[0].Unchanged == promotions[1].Unchanged || len(events) != 1 {
					t.Errorf("promotions %+v, and %d in history: want one that is there already, and 1", promotions, len(events))
				}
			} else if len(events) != 2 || events[1].Previous != events[0].Release {
				t.Errorf("the promotions in history are %+v, want one after the other", events)
			}
			if head := w.head(t); head.Release != events[len(events)-1].Release || len(w.pending(t)) != 0 {
				t.Errorf("the head is %+v, the intents are %v; want the last promotion of history, and none", head, w.pending(t))
			}
			w.whole(t)
		})
	}
}
