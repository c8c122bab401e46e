package registrytest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestUploadStates is the contract of [storage.UploadStates].
func TestUploadStates(t *testing.T, open Clocked[storage.UploadStates]) {
	for name, test := range map[string]func(*testing.T, storage.UploadStates, func(time.Duration)){
		"keeps every field":     testStatesRoundTrip,
		"belongs to its owner":  testStatesOwner,
		"no such upload":        testStatesUnknown,
		"taken identifier":      testStatesTaken,
		"swap by version":       testStatesSwap,
		"end by version":        testStatesEnd,
		"end with its blob":     testStatesEndWithBlob,
		"stale ones":            testStatesStale,
		"many stale ones":       testStatesManyStale,
		"counted by principal":  testStatesCount,
		"of many, one swaps":    testStatesRace,
		"keeps no caller's own": testStatesAliased,
		"touched by one clock":  testStatesTouched,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, pass := open(t)
			test(t, states, pass)
		})
	}
}

var alice = storage.UploadOwner{Repository: "staging/a", Principal: "alice"}

// createUpload records an upload.
func createUpload(t *testing.T, states storage.UploadStates) storage.UploadState {
	t.Helper()
	s := storage.NewUpload(alice)
	must(t, states.CreateUpload(t.Context(), s))
	return s
}

func wantState(t *testing.T, states storage.UploadStates, want storage.UploadState) {
	t.Helper()
	got, err := states.Upload(t.Context(), want.Owner, want.ID)
	must(t, err)
	wantSameState(t, got, want)
}

func wantSameState(t *testing.T, got, want storage.UploadState) {
	t.Helper()
	if !bytes.Equal(got.Hash, want.Hash) {
		t.Errorf("the hash of upload %s is %x, want %x", want.ID, got.Hash, want.Hash)
	}
	got.Hash, want.Hash = nil, nil
	if got.Touched.IsZero() || got.Touched.Location() != time.UTC {
		t.Errorf("upload %s was touched at %v, want a time in UTC", want.ID, got.Touched)
	}
	want.Touched = got.Touched
	wantEqual(t, got, want)
}

func testStatesRoundTrip(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	bare := createUpload(t, states)
	wantState(t, states, bare)

	full := storage.NewUpload(storage.UploadOwner{Repository: "staging/a", Principal: "https://issuer.example.com#sübject'--"})
	full.Offset, full.Hash, full.Place = 1<<50, []byte{0, 1, 0xff, 0}, `{"file":"ü'\u0000"}`
	must(t, states.CreateUpload(t.Context(), full))
	wantState(t, states, full)
	wantState(t, states, bare)
}

func testStatesOwner(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	s := createUpload(t, states)
	for _, stranger := range []storage.UploadOwner{
		{}, {Repository: "staging/a"}, {Principal: "alice"}, {Repository: "staging/a", Principal: "bob"},
		{Repository: "staging/b", Principal: "alice"}, {Repository: "staging/a", Principal: "Alice"},
	} {
		_, err := states.Upload(t.Context(), stranger, s.ID)
		wantCode(t, err, registry.CodeNotFound)
	}
	wantState(t, states, s)
}

func testStatesUnknown(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	for _, id := range []string{"", "none", "../x", "\x00", "\xff\xfe", strings.Repeat("a", 5000), "0b9f9a5c-3f0a-4c59-9a56-3e6d1a3c5d10"} {
		_, err := states.Upload(t.Context(), alice, id)
		wantCode(t, err, registry.CodeNotFound)
	}
	never := storage.NewUpload(alice)
	wantCode(t, states.SwapUpload(t.Context(), never), registry.CodeNotFound)
	wantCode(t, states.EndUpload(t.Context(), never.ID, 1), registry.CodeNotFound)
}

func testStatesTaken(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	s := createUpload(t, states)
	again := s
	again.Owner, again.Offset = storage.UploadOwner{Repository: "staging/b"}, 7
	wantCode(t, states.CreateUpload(t.Context(), again), registry.CodeConflict)
	wantState(t, states, s)
}

func testStatesSwap(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	first := createUpload(t, states)
	next := first
	next.Owner = storage.UploadOwner{Repository: "staging/b"} // an upload does not change hands
	next.Offset, next.Hash, next.Place = 7, []byte("state"), "there"
	must(t, states.SwapUpload(t.Context(), next))
	next.Owner, next.Version = first.Owner, 2
	wantState(t, states, next)

	wantCode(t, states.SwapUpload(t.Context(), first), registry.CodeConflict)
	ahead := next
	ahead.Version = 3
	wantCode(t, states.SwapUpload(t.Context(), ahead), registry.CodeConflict)
	wantState(t, states, next)
	must(t, states.SwapUpload(t.Context(), next))
	next.Version = 3
	wantState(t, states, next)
}

func testStatesEnd(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	s, other := createUpload(t, states), createUpload(t, states)
	must(t, states.SwapUpload(t.Context(), s))
	wantCode(t, states.EndUpload(t.Context(), s.ID, 1), registry.CodeConflict)
	must(t, states.EndUpload(t.Context(), s.ID, 2))
	_, err := states.Upload(t.Context(), alice, s.ID)
	wantCode(t, err, registry.CodeNotFound)
	wantCode(t, states.EndUpload(t.Context(), s.ID, 2), registry.CodeNotFound)
	wantCode(t, states.SwapUpload(t.Context(), s), registry.CodeNotFound)
	wantState(t, states, other)
}

// A blob that came in one request is recorded, and its upload ends, if the upload is one of the
// same owner that nobody wrote to.
func testStatesEndWithBlob(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	members, ok := states.(storage.Members)
	if !ok {
		t.Fatalf("%T does not record blobs", states)
	}
	stays, swapped, ends := createUpload(t, states), createUpload(t, states), createUpload(t, states)
	must(t, states.SwapUpload(t.Context(), swapped))
	swapped.Version = 2
	bob := storage.UploadOwner{Repository: alice.Repository, Principal: "bob"}
	elsewhere := storage.UploadOwner{Repository: "staging/b", Principal: alice.Principal}
	for i, c := range []struct {
		owner storage.UploadOwner
		id    string
		added bool
	}{
		{alice, "none", false}, {alice, "\x00", false}, {bob, stays.ID, false}, {elsewhere, stays.ID, false}, {alice, swapped.ID, false},
		{alice, ends.ID, true}, {alice, ends.ID, false},
	} {
		blob := d(fmt.Sprint("blob ", i))
		added, err := members.AddUploaded(t.Context(), c.owner, c.id, blob, 4)
		must(t, err)
		wantEqual(t, added, c.added)
		size, err := members.Blob(t.Context(), c.owner.Repository, blob)
		if !c.added {
			wantCode(t, err, registry.CodeNotFound)
			continue
		}
		must(t, err)
		wantEqual(t, size, int64(4))
	}
	wantState(t, states, stays)
	wantState(t, states, swapped)
	_, err := states.Upload(t.Context(), alice, ends.ID)
	wantCode(t, err, registry.CodeNotFound)
}

func testStatesStale(t *testing.T, states storage.UploadStates, pass func(time.Duration)) {
	swapped := createUpload(t, states)
	pass(time.Hour)
	older := createUpload(t, states)
	pass(time.Hour)
	old := createUpload(t, states)
	pass(2 * time.Hour)
	young := createUpload(t, states)
	must(t, states.SwapUpload(t.Context(), swapped))
	swapped.Version = 2
	got := collect(t, states.StaleUploads(t.Context(), time.Hour))
	if len(got) != 2 {
		t.Fatalf("stale are %v, want two", got)
	}
	wantSameState(t, got[0], older)
	wantSameState(t, got[1], old)
	wantState(t, states, young)
	wantState(t, states, swapped)
	wantEqual(t, len(collect(t, states.StaleUploads(t.Context(), 0))), 4)
	wantCanceled(t, func(ctx context.Context) iter.Seq2[storage.UploadState, error] {
		return states.StaleUploads(ctx, time.Hour)
	})
}

// Ending uploads while they are listed is what listing them is for.
// Whoever keeps states counts them too.
func testStatesCount(t *testing.T, states storage.UploadStates, pass func(time.Duration)) {
	counts, ok := states.(storage.UploadCounts)
	if !ok {
		t.Fatalf("%T does not count uploads", states)
	}
	want := func(principal string, want int) {
		t.Helper()
		n, err := counts.CountUploads(t.Context(), principal, time.Hour)
		must(t, err)
		wantEqual(t, n, want)
	}
	want("alice", 0)
	createUpload(t, states)
	pass(time.Second)
	fresh := createUpload(t, states)
	pass(time.Hour)
	other := storage.NewUpload(storage.UploadOwner{Repository: "staging/b", Principal: "alice"})
	must(t, states.CreateUpload(t.Context(), other))
	nobody := storage.NewUpload(storage.UploadOwner{Repository: "staging/a"})
	must(t, states.CreateUpload(t.Context(), nobody))
	want("alice", 2)
	want("", 1)
	want("bob", 0)
	must(t, states.EndUpload(t.Context(), fresh.ID, 1))
	want("alice", 1)
}

func testStatesManyStale(t *testing.T, states storage.UploadStates, pass func(time.Duration)) {
	const many = 250
	for range many { // all of the same moment
		createUpload(t, states)
	}
	pass(time.Hour)
	seen := make(map[string]bool)
	for s, err := range states.StaleUploads(t.Context(), time.Minute) {
		must(t, err)
		if seen[s.ID] {
			t.Errorf("upload %s is listed twice", s.ID)
		}
		seen[s.ID] = true
		if len(seen)%2 == 0 {
			must(t, states.EndUpload(t.Context(), s.ID, s.Version))
		}
	}
	wantEqual(t, len(seen), many)
	wantEqual(t, len(collect(t, states.StaleUploads(t.Context(), time.Minute))), many/2)
}

func testStatesRace(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	s := createUpload(t, states)
	var wg sync.WaitGroup
	var winners atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			mine := s
			mine.Offset, mine.Place = int64(i), fmt.Sprint(i)
			err := states.SwapUpload(t.Context(), mine)
			if err == nil {
				winners.Add(1)
				return
			}
			wantCode(t, err, registry.CodeConflict)
		})
	}
	wg.Wait()
	wantEqual(t, winners.Load(), int32(1))
	got, err := states.Upload(t.Context(), alice, s.ID)
	must(t, err)
	wantEqual(t, got.Place, fmt.Sprint(got.Offset))
	wantEqual(t, got.Version, int64(2))
}

func testStatesAliased(t *testing.T, states storage.UploadStates, _ func(time.Duration)) {
	s := storage.NewUpload(alice)
	s.Hash = []byte("state")
	want := s
	want.Hash = slices.Clone(s.Hash)
	must(t, states.CreateUpload(t.Context(), s))
	s.Hash[0] = 'X'
	got, err := states.Upload(t.Context(), alice, s.ID)
	must(t, err)
	got.Hash[1] = 'X'
	wantState(t, states, want)
}

// Whatever the clock of a caller says, an upload is as old as the catalog's clock says.
func testStatesTouched(t *testing.T, states storage.UploadStates, pass func(time.Duration)) {
	s := storage.NewUpload(alice)
	s.Touched = begin().Add(24 * time.Hour)
	must(t, states.CreateUpload(t.Context(), s))
	made, err := states.Upload(t.Context(), alice, s.ID)
	must(t, err)
	pass(time.Hour)
	must(t, states.SwapUpload(t.Context(), s))
	swapped, err := states.Upload(t.Context(), alice, s.ID)
	must(t, err)
	wantEqual(t, []time.Duration{made.Touched.Sub(NewClock().Now()), swapped.Touched.Sub(made.Touched)}, []time.Duration{0, time.Hour})
	pass(30 * time.Minute)
	wantEqual(t, len(collect(t, states.StaleUploads(t.Context(), time.Hour))), 0)
}
