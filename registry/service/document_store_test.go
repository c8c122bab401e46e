package service_test

import (
	"context"
	"errors"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// fullTable is a table that takes no more documents.
type fullTable[T any] struct{ registry.Table[T] }

var errFull = errors.New("the disk is full")

func (fullTable[T]) Put(context.Context, string, T) error { return errFull }

// A recall that is not stored must not pass for one: the caller hears of it, and the history has no event.
func TestRestrictionsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *backend.Backend) {
		c.RestrictionBundles = fullTable[storage.RestrictionBundle]{c.RestrictionBundles}
	})
	r := w.Promoted(t, registrytest.Build{})
	list := w.NextList(t, "prod", "recalled by its vendor", registrytest.SourceOf(r), nil)
	if signed, err := w.Restrict(t.Context(), "prod", list); !errors.Is(err, errFull) {
		t.Errorf("got list %d and error %v, want that of the table", signed.List.Counter, err)
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventRestrict})
	if err != nil || len(events) != 0 {
		t.Errorf("the history has %+v, error %v, want no restriction", events, err)
	}
}

// The same holds for trust that is not stored.
func TestTrustThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := publishing(t)
	first := w.publish(t)
	w.config.TrustBundles = fullTable[storage.TrustBundleDocument]{w.config.TrustBundles}
	w.serve(t)
	if signed, err := w.PublishTrust(t.Context(), w.signTrust(t, "publisher", w.nextTrust(t))); !errors.Is(err, errFull) {
		t.Errorf("got bundle %d and error %v, want that of the table", signed.Trust.Version, err)
	}
	if now, err := w.TrustBundle(t.Context()); err != nil || now.Digest != first.Digest {
		t.Errorf("the newest bundle is %d, error %v, want the first", now.Trust.Version, err)
	}
}
