package registrytest

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestIntents is the contract of [storage.Intents]. That a change ends them is part of
// [TestStore].
func TestIntents(t *testing.T, open Clocked[Store]) {
	t.Run("begin and pending", func(t *testing.T) {
		t.Parallel()
		intents, _ := open(t)
		wantPending(t, intents)
		first := intent("a", "1.0.0")
		must(t, intents.Begin(t.Context(), first))
		must(t, intents.Begin(t.Context(), intent("b", "1.0.0")))
		wantPending(t, intents, first, intent("b", "1.0.0"))
		must(t, intents.Begin(t.Context(), intent("a", "2.0.0")))
		wantPending(t, intents, intent("a", "2.0.0"), intent("b", "1.0.0"))
	})
	t.Run("end", func(t *testing.T) {
		t.Parallel()
		intents, _ := open(t)
		must(t, intents.End(t.Context(), "prod", "a", d("1.0.0")))
		must(t, intents.Begin(t.Context(), intent("a", "2.0.0")))
		must(t, intents.Begin(t.Context(), intent("b", "2.0.0")))
		must(t, intents.End(t.Context(), "prod", "a", d("1.0.0"))) // it is for another release by now
		must(t, intents.End(t.Context(), "staging", "a", d("2.0.0")))
		wantPending(t, intents, intent("a", "2.0.0"), intent("b", "2.0.0"))
		must(t, intents.End(t.Context(), "prod", "a", d("2.0.0")))
		wantPending(t, intents, intent("b", "2.0.0"))
	})
	t.Run("begun by one clock", func(t *testing.T) {
		t.Parallel()
		intents, pass := open(t)
		pass(time.Hour)
		i := intent("a", "1.0.0")
		i.Begun = begin().Add(24 * time.Hour)
		must(t, intents.Begin(t.Context(), i))
		pending, err := intents.Pending(t.Context())
		must(t, err)
		wantEqual(t, pending[0].Begun, NewClock().Now().Add(time.Hour))
	})
	t.Run("abandon", func(t *testing.T) {
		t.Parallel()
		store, pass := open(t)
		testAbandon(t, store, pass)
	})
	t.Run("abandon of one whose head moved", func(t *testing.T) {
		t.Parallel()
		store, _ := open(t)
		testAbandonMoved(t, store)
	})
}

func testAbandon(t *testing.T, intents storage.Intents, pass func(time.Duration)) {
	abandon := func(i history.Intent) {
		t.Helper()
		must(t, intents.Abandon(t.Context(), i))
	}
	abandon(intent("a", "1.0.0"))
	must(t, intents.Begin(t.Context(), intent("a", "1.0.0")))
	must(t, intents.Begin(t.Context(), intent("b", "1.0.0")))
	pending, err := intents.Pending(t.Context())
	must(t, err)
	stale := pending[0]
	pass(time.Hour)
	must(t, intents.Begin(t.Context(), intent("a", "1.0.0")))
	abandon(stale) // it has begun again
	wantPending(t, intents, intent("a", "1.0.0"), intent("b", "1.0.0"))
	other := pending[1]
	other.Release = d("2.0.0")
	abandon(other)
	wantPending(t, intents, intent("a", "1.0.0"), intent("b", "1.0.0"))
	abandon(pending[1])
	abandon(pending[1])
	wantPending(t, intents, intent("a", "1.0.0"))
}

// The mirror of a head that has moved may not be written yet.
func testAbandonMoved(t *testing.T, store Store) {
	must(t, store.Begin(t.Context(), intent("a", "1.0.0")))
	pending, err := store.Pending(t.Context())
	must(t, err)
	_, err = store.Apply(t.Context(), move("a", "", "1.0.0"))
	must(t, err)
	must(t, store.Abandon(t.Context(), pending[0]))
	wantPending(t, store, intent("a", "1.0.0"))
}

func intent(model, release string) history.Intent {
	return history.Intent{Environment: "prod", Model: model, From: "staging", Release: d(release)}
}

// wantPending wants intents by environment and model, which began in UTC.
func wantPending(t *testing.T, intents storage.Intents, want ...history.Intent) {
	t.Helper()
	got, err := intents.Pending(t.Context())
	must(t, err)
	for i := range got {
		if got[i].Begun.IsZero() || got[i].Begun.Location() != time.UTC {
			t.Errorf("%s in %s began at %v, want a time in UTC", got[i].Model, got[i].Environment, got[i].Begun)
		}
		got[i].Begun = time.Time{}
	}
	if len(got) != len(want) {
		t.Fatalf("pending are %v, want %v", got, want)
	}
	for i := range want {
		wantEqual(t, got[i], want[i])
	}
}
