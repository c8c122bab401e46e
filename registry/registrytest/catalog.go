package registrytest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestCatalog is the contract of [storage.Catalog].
func TestCatalog(t *testing.T, open func(t *testing.T) storage.Catalog) {
	for name, test := range map[string]func(*testing.T, storage.Catalog){
		"heads":                      testHeads,
		"compare and swap":           testCompareAndSwap,
		"hold":                       testHold,
		"standing":                   testStanding,
		"basis":                      testBasis,
		"move that rests on nothing": testMoveOnNothing,
		"time of a move":             testTimeOfMove,
		"move without release":       testMoveWithoutRelease,
		"adverse evidence":           testAdverse,
		"row of adverse evidence":    testAdverseRow,
		"immutable tag":              testImmutableTag,
		"immutable tag in a change":  testImmutableTagInChange,
		"event comes back":           testEventComesBack,
		"history queries":            testHistoryQueries,
		"long history":               testLongHistory,
		"changes while history runs": testHistoryWrites,
		"canceled history":           testHistoryCanceled,
		"one of many moves wins":     testMovesRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// begin is when the histories of the tests begin. It has all that must be cut off.
func begin() time.Time {
	return time.Date(2026, 11, 21, 1, 2, 3, 456789123, time.FixedZone("", 3600))
}

// event is a promotion of a release to prod.
func event(model, release string) history.Event {
	return history.Event{
		Time: begin(), Kind: history.EventPromote, Environment: "prod", Model: model,
		Version: release, Release: d(release),
	}
}

// move is a change that moves a head from one release to another.
func move(model, from, to string) storage.Change {
	var before registry.Digest
	if from != "" {
		before = d(from)
	}
	return storage.Change{Event: event(model, to), DecisionBasis: HeadAlone("prod", model, before), Move: &storage.HeadMove{}}
}

// inEnvironment is a change in another environment.
func inEnvironment(environment string, c storage.Change) storage.Change {
	c.Event.Environment, c.DecisionBasis.Environment = environment, environment
	return c
}

func apply(t *testing.T, catalog storage.Catalog, c storage.Change) history.Event {
	t.Helper()
	e, err := catalog.Apply(t.Context(), c)
	must(t, err)
	return e
}

func historyOf(t *testing.T, catalog storage.Catalog, q history.HistoryQuery) []history.Event {
	t.Helper()
	return collect(t, catalog.History(t.Context(), q))
}

// wantChain wants an unbroken history of n events.
func wantChain(t *testing.T, catalog storage.Catalog, n int) {
	t.Helper()
	var before history.Event
	events := historyOf(t, catalog, history.HistoryQuery{})
	for _, e := range events {
		if err := e.VerifyChain(before); err != nil {
			t.Error(err)
		}
		before = e
	}
	if len(events) != n {
		t.Errorf("history has %d events, want %d", len(events), n)
	}
}

func testHeads(t *testing.T, catalog storage.Catalog) {
	ctx := t.Context()
	_, err := catalog.Head(ctx, "prod", "a")
	wantCode(t, err, registry.CodeNotFound)
	for _, place := range [][2]string{{"staging", "b"}, {"prod", "b"}, {"staging", "a"}, {"prod", "a"}} {
		apply(t, catalog, inEnvironment(place[0], move(place[1], "", "1.0.0")))
	}
	got, err := catalog.Head(ctx, "prod", "a")
	must(t, err)
	wantEqual(t, got, history.Head{
		Environment: "prod", Model: "a", Release: d("1.0.0"), Version: "1.0.0",
		Since: begin().UTC().Truncate(time.Microsecond),
	})
	for _, c := range []struct{ environment, model, want string }{
		{"", "", "prod/a prod/b staging/a staging/b "},
		{"prod", "", "prod/a prod/b "},
		{"", "b", "prod/b staging/b "},
		{"staging", "a", "staging/a "},
		{"nowhere", "", ""},
	} {
		heads, err := catalog.Heads(ctx, c.environment, c.model)
		must(t, err)
		list := ""
		for _, h := range heads {
			list += h.Environment + "/" + h.Model + " "
		}
		wantEqual(t, list, c.want)
	}
}

func testCompareAndSwap(t *testing.T, catalog storage.Catalog) {
	ctx := t.Context()
	_, err := catalog.Apply(ctx, move("a", "0.9.0", "1.0.0"))
	wantCode(t, err, registry.CodeConflict) // expected a head where there is none
	apply(t, catalog, move("a", "", "1.0.0"))
	_, err = catalog.Apply(ctx, move("a", "", "2.0.0"))
	wantCode(t, err, registry.CodeConflict) // expected none
	_, err = catalog.Apply(ctx, move("a", "0.9.0", "2.0.0"))
	wantCode(t, err, registry.CodeConflict) // expected another
	head, err := catalog.Head(ctx, "prod", "a")
	must(t, err)
	wantEqual(t, head.Release, d("1.0.0"))
	apply(t, catalog, move("a", "1.0.0", "2.0.0"))
	apply(t, catalog, storage.Change{Event: event("a", "3.0.0")}) // moves no head
	head, err = catalog.Head(ctx, "prod", "a")
	must(t, err)
	wantEqual(t, head.Release, d("2.0.0"))
	wantChain(t, catalog, 3)
}

// A hold comes and goes with moves. One to the same release keeps the time.
func testHold(t *testing.T, catalog storage.Catalog) {
	rollback := move("a", "", "1.0.0")
	rollback.Move.Hold = "bad answers"
	apply(t, catalog, rollback)
	head, err := catalog.Head(t.Context(), "prod", "a")
	must(t, err)
	wantEqual(t, head.Hold, "bad answers")
	release := move("a", "1.0.0", "1.0.0")
	release.DecisionBasis.Head.Hold = "bad answers"
	release.Event.Time = begin().Add(time.Hour)
	apply(t, catalog, release)
	after, err := catalog.Head(t.Context(), "prod", "a")
	must(t, err)
	head.Hold = ""
	wantEqual(t, after, head)
}

func testMoveWithoutRelease(t *testing.T, catalog storage.Catalog) {
	c := move("a", "", "1.0.0")
	c.Event.Release = ""
	_, err := catalog.Apply(t.Context(), c)
	wantCode(t, err, registry.CodeInvalid)
	wantChain(t, catalog, 0)
}

func testImmutableTag(t *testing.T, catalog storage.Catalog) {
	tagged := func(release string, immutable bool) storage.Change {
		return storage.Change{Event: event("a", release), Tags: []storage.TagMove{
			{Repository: "prod/a", Tag: "1.0.0", Digest: d(release), Immutable: immutable},
		}}
	}
	apply(t, catalog, tagged("first", true))
	apply(t, catalog, tagged("first", true)) // names it already
	_, err := catalog.Apply(t.Context(), tagged("second", true))
	wantCode(t, err, registry.CodeConflict)
	apply(t, catalog, tagged("second", false))
	_, err = catalog.Apply(t.Context(), tagged("first", true)) // it did move
	wantCode(t, err, registry.CodeConflict)
	wantChain(t, catalog, 3)
}

func testImmutableTagInChange(t *testing.T, catalog storage.Catalog) {
	c := storage.Change{Event: event("a", "1.0.0"), Tags: []storage.TagMove{
		{Repository: "prod/a", Tag: "1.0.0", Digest: d("one")},
		{Repository: "prod/a", Tag: "1.0.0", Digest: d("two"), Immutable: true},
	}}
	_, err := catalog.Apply(t.Context(), c)
	wantCode(t, err, registry.CodeConflict)
	wantChain(t, catalog, 0)
}

func testEventComesBack(t *testing.T, catalog storage.Catalog) {
	full := history.Event{
		Seq: 99, Time: begin(), Kind: history.EventAttach, Environment: "prod", Model: "vision/digits",
		Version: "1.0.0-r2", Release: d("release"), Previous: d("previous"), Subject: d("subject"),
		PredicateType: "https://mlpromote.dev/parity/v1", Evidence: []registry.Digest{d("one"), d("two")},
		Signer: "key", Reason: "quotes \" and \\, <tags> & \u2028, ü, 世界, \x00, \xff", Prev: d("prev"), Hash: d("hash"),
	}
	given := full
	given.Evidence = append([]registry.Digest(nil), full.Evidence...)
	made := apply(t, catalog, storage.Change{Event: given})
	want, err := full.Chain(history.Event{})
	must(t, err)
	wantEqual(t, made, want)
	given.Evidence[0] = "changed"
	made.Evidence[1] = "changed"
	second := apply(t, catalog, storage.Change{Event: event("b", "1.0.0")})
	wantEqual(t, []any{second.Seq, second.Prev}, []any{int64(2), want.Hash})
	got := historyOf(t, catalog, history.HistoryQuery{})
	wantChain(t, catalog, 2)
	for i, w := range []history.Event{want, second} {
		wantEqual(t, []any{got[i].Hash, got[i].Time, got[i].Evidence}, []any{w.Hash, w.Time, w.Evidence})
	}
}

func testHistoryQueries(t *testing.T, catalog storage.Catalog) {
	for i := range 12 {
		e := event([]string{"a", "b"}[i%2], fmt.Sprint(i))
		if i%3 == 0 {
			e.Environment = "staging"
		}
		if i%4 == 0 {
			e.Kind, e.Subject, e.Signer = history.EventAttach, d("engine"), []string{"key", "other"}[i/4%2]
			e.Principal = []string{"token:ana", ""}[i/8]
		}
		apply(t, catalog, storage.Change{Event: e})
	}
	all := historyOf(t, catalog, history.HistoryQuery{})
	for _, environment := range []string{"", "prod", "nowhere"} {
		for _, model := range []string{"", "a"} {
			for _, kind := range []history.EventKind{"", history.EventAttach, history.EventPromote} {
				for _, subject := range []registry.Digest{"", d("engine"), d("nobody")} {
					for _, hash := range []registry.Digest{all[8].Hash, d("no event")} {
						wantHistory(t, catalog, history.HistoryQuery{Environment: environment, Model: model, Kind: kind, Subject: subject, Hash: hash, After: 5, Limit: 3}, all)
					}
					for _, after := range []int64{0, 5, 12} {
						for before, limit := range map[int64]int{0: 0, 9: 0, 100: 2, 8: 1} {
							q := history.HistoryQuery{Environment: environment, Model: model, Kind: kind, Subject: subject, After: after, Before: before, Limit: limit}
							wantHistory(t, catalog, q, all)
							q.Descending = true
							wantHistory(t, catalog, q, all)
							q.Signer, q.Principal = "other", "token:ana"
							wantHistory(t, catalog, q, all)
						}
					}
				}
			}
		}
	}
}

// selects reports whether a query selects an event, but for its limit.
func selects(q history.HistoryQuery, e history.Event) bool {
	within := e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before)
	about := (q.Environment == "" || e.Environment == q.Environment) && (q.Model == "" || e.Model == q.Model)
	same := (q.Kind == "" || e.Kind == q.Kind) && (q.Subject == "" || e.Subject == q.Subject) && (q.Hash == "" || e.Hash == q.Hash)
	same = same && (q.Signer == "" || e.Signer == q.Signer) && (q.Principal == "" || e.Principal == q.Principal)
	return within && about && same
}

// wantHistory compares a query with a walk over all events.
func wantHistory(t *testing.T, catalog storage.Catalog, q history.HistoryQuery, all []history.Event) {
	t.Helper()
	want := []int64{}
	for _, e := range all {
		if selects(q, e) {
			want = append(want, e.Seq)
		}
	}
	if q.Descending {
		for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
			want[i], want[j] = want[j], want[i]
		}
	}
	if q.Limit > 0 {
		want = want[:min(q.Limit, len(want))]
	}
	got := []int64{}
	for _, e := range historyOf(t, catalog, q) {
		got = append(got, e.Seq)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v: got rows %v, want %v", q, got, want)
	}
}

// Longer than a page of any implementation, in both directions and by model.
func testLongHistory(t *testing.T, catalog storage.Catalog) {
	const n = 230
	for i := range n {
		apply(t, catalog, storage.Change{Event: event("a", fmt.Sprint(i))})
	}
	wantChain(t, catalog, n)
	for _, q := range []history.HistoryQuery{{Limit: 150}, {Limit: 200, Descending: true}, {Before: n - 2, Limit: 101, Descending: true}} {
		if events := historyOf(t, catalog, q); len(events) != q.Limit {
			t.Errorf("%+v: %d events", q, len(events))
		}
	}
	for _, q := range []history.HistoryQuery{{Descending: true}, {Environment: "prod", Model: "a"}, {Environment: "prod", Model: "a", Descending: true}} {
		events := historyOf(t, catalog, q)
		if len(events) != n {
			t.Fatalf("%+v: %d events, want %d", q, len(events), n)
		}
		for i, e := range events {
			if want := int64(i + 1); e.Seq != want && e.Seq != n+1-want {
				t.Fatalf("%+v: row %d has sequence number %d", q, i, e.Seq)
			}
		}
	}
}

func testHistoryWrites(t *testing.T, catalog storage.Catalog) {
	for range 3 {
		apply(t, catalog, storage.Change{Event: event("a", "1.0.0")})
	}
	seen := 0
	for _, err := range catalog.History(t.Context(), history.HistoryQuery{}) {
		must(t, err)
		apply(t, catalog, storage.Change{Event: event("a", "2.0.0")})
		if seen++; seen == 3 {
			break
		}
	}
	wantChain(t, catalog, 6)
}

func testHistoryCanceled(t *testing.T, catalog storage.Catalog) {
	apply(t, catalog, storage.Change{Event: event("a", "1.0.0")})
	wantCanceled(t, func(ctx context.Context) iter.Seq2[history.Event, error] {
		return catalog.History(ctx, history.HistoryQuery{})
	})
}

func testMovesRace(t *testing.T, catalog storage.Catalog) {
	Race(t, catalog, catalog)
}

// Race lets the catalogs, which are doors to the same data, compete for one head and
// append to one history at the same time. Exactly one move may win and the chain must
// stay whole. The data must be empty before.
func Race(t *testing.T, catalogs ...storage.Catalog) {
	t.Helper()
	const each = 16
	var wg sync.WaitGroup
	won := make(chan string, each*len(catalogs))
	for i, catalog := range catalogs {
		for j := range each {
			wg.Go(func() {
				release := fmt.Sprintf("%d.%d.0", i, j)
				if _, err := catalog.Apply(t.Context(), move("contested", "", release)); err == nil {
					won <- release
				} else if registry.CodeOf(err) != registry.CodeConflict {
					t.Errorf("a losing move: got %v, want code %s", err, registry.CodeConflict)
				}
				if _, err := catalog.Apply(t.Context(), storage.Change{Event: event("other", release)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d moves won, want 1", len(won))
	}
	head, err := catalogs[0].Head(t.Context(), "prod", "contested")
	must(t, err)
	wantEqual(t, head.Version, <-won)
	wantChain(t, catalogs[0], 1+each*len(catalogs))
}

// testLastEvent wants the newest event of one model in one environment, of whatever kind.
func testLastEvent(t *testing.T, store Store) {
	want := func(environment, model string, hash registry.Digest) {
		t.Helper()
		got, err := store.LastEvent(t.Context(), environment, model)
		must(t, err)
		wantEqual(t, got, hash)
	}
	want("prod", "a", "")
	first := apply(t, store, move("a", "", "1.0.0"))
	want("prod", "a", first.Hash)
	attached := event("a", "1.0.0")
	attached.Kind, attached.Reason = history.EventAttach, `"hash":"another"`
	second := apply(t, store, storage.Change{Event: attached})
	apply(t, store, move("b", "", "1.0.0"))
	apply(t, store, inEnvironment("staging", move("a", "", "1.0.0")))
	want("prod", "a", second.Hash)
	want("prod", "c", "")
	want("moon", "a", "")
}
