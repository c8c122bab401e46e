package registrytest

import (
	"fmt"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// testRecorded wants the first event of a model that names a bundle, in any environment.
func testRecorded(t *testing.T, store Store) {
	attach := func(environment, model string, minutes int, evidence ...registry.Digest) history.Event {
		e := event(model, "1.0.0")
		e.Kind, e.Environment, e.Evidence = history.EventAttach, environment, evidence
		e.Time = begin().Add(time.Duration(minutes) * time.Minute)
		e.Reason = `"evidence":["` + string(d("forged")) + `"],"time":"2001-01-01T00:00:00Z"` // looks like fields, and is text
		return apply(t, store, storage.Change{Event: e})
	}
	apply(t, store, storage.Change{Event: event("a", "1.0.0")}) // without evidence
	first := attach("staging", "a", 1, d("one"), d("two"), d("one"))
	other := attach("staging", "b", 2, d("one"), d("three"))
	later := attach("prod", "a", 3, d("three"), d("two"), d("one"))
	record := func(e history.Event) history.Record { return history.Record{Seq: e.Seq, Time: e.Time} }
	must(t, store.Reindex(t.Context(), "b")) // which changes nothing that is right
	for model, want := range map[string]map[registry.Digest]history.Record{
		"a": {d("one"): record(first), d("two"): record(first), d("three"): record(later)},
		"b": {d("one"): record(other), d("three"): record(other)},
		"c": {},
	} {
		got, err := store.Recorded(t.Context(), model, []registry.Digest{d("three"), d("one"), d("two"), d("nobody"), d("forged"), d("one")})
		must(t, err)
		wantEqual(t, got, want)
	}
	got, err := store.Recorded(t.Context(), "a", nil)
	must(t, err)
	wantEqual(t, len(got), 0)
}

// More bundles than any implementation takes in one piece.
func testRecordedMany(t *testing.T, store Store) {
	const n = 1500
	e := event("a", "1.0.0")
	for i := range n {
		e.Evidence = append(e.Evidence, d(fmt.Sprint(i)))
	}
	made := apply(t, store, storage.Change{Event: e})
	got, err := store.Recorded(t.Context(), "a", append(e.Evidence, d("nobody")))
	must(t, err)
	if len(got) != n || got[d("7")] != (history.Record{Seq: made.Seq, Time: made.Time}) {
		t.Errorf("%d bundles were recorded, the seventh in %+v; want %d, in row %d", len(got), got[d("7")], n, made.Seq)
	}
}
