package service_test

import (
	"context"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
)

// meeting is a catalog in which promotions wait for one another before they are applied.
type meeting struct {
	registry.Catalog
	all *sync.WaitGroup
}

func (m meeting) Apply(ctx context.Context, c registry.Change) (registry.Event, error) {
	if c.Event.Kind == registry.EventPromote {
		m.all.Done()
		m.all.Wait()
	}
	return m.Catalog.Apply(ctx, c)
}

func TestOneOfTwoPromotionsWins(t *testing.T) {
	t.Parallel()
	for name, references := range map[string][]string{"of two releases": {"1.0.0", "1.1.0"}, "of one release": {"1.1.0", "1.1.0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			all.Add(len(references))
			w := setup(t, func(c *service.Config) { c.Catalog = meeting{c.Catalog, &all} })
			w.proven(t, registrytest.Build{})
			w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			promotions, errs := make([]registry.Promotion, len(references)), make([]error, len(references))
			var done sync.WaitGroup
			for i, reference := range references {
				done.Go(func() {
					promotions[i], errs[i] = w.Promote(t.Context(), registry.PromoteRequest{Model: registrytest.Model, Reference: reference})
				})
			}
			done.Wait()
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			if errs[winner] != nil || registry.CodeOf(errs[1-winner]) != registry.CodeConflict {
				t.Fatalf("errors %v, want one CodeConflict", errs)
			}
			if head := w.head(t); head.Release != promotions[winner].Release || head.Version != references[winner] {
				t.Errorf("the head is %+v, the winner's promotion %+v", head, promotions[winner])
			}
			w.whole(t)
			if events, err := w.History(t.Context(), registry.HistoryQuery{Kind: registry.EventPromote}); err != nil || len(events) != 1 {
				t.Errorf("there are %d promotions in history, want 1 (error %v)", len(events), err)
			}
		})
	}
}
