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
)

// TestUploadStates is the contract of [registry.UploadStates].
func TestUploadStates(t *testing.T, open func(t *testing.T) registry.UploadStates) {
	for name, test := range map[string]func(*testing.T, registry.UploadStates){
		"keeps every field":     testStatesRoundTrip,
		"belongs to its owner":  testStatesOwner,
		"no such upload":        testStatesUnknown,
		"taken identifier":      testStatesTaken,
		"swap by version":       testStatesSwap,
		"end by version":        testStatesEnd,
		"stale ones":            testStatesStale,
		"many stale ones":       testStatesManyStale,
		"counted by principal":  testStatesCount,
		"of many, one swaps":    testStatesRace,
		"keeps no caller's own": testStatesAliased,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

var alice = registry.UploadOwner{Repository: "staging/a", Principal: "alice"}

// createUpload records an upload that nobody has touched since a time.
func createUpload(t *testing.T, states registry.UploadStates, touched time.Time) registry.UploadState {
	t.Helper()
	s := registry.NewUpload(alice, touched)
	must(t, states.CreateUpload(t.Context(), s))
	return s
}

func wantState(t *testing.T, states registry.UploadStates, want registry.UploadState) {
	t.Helper()
	got, err := states.Upload(t.Context(), want.Owner, want.ID)
	must(t, err)
	wantSameState(t, got, want)
}

func wantSameState(t *testing.T, got, want registry.UploadState) {
	t.Helper()
	if !bytes.Equal(got.Hash, want.Hash) {
		t.Errorf("the hash of upload %s is %x, want %x", want.ID, got.Hash, want.Hash)
	}
	got.Hash, want.Hash = nil, nil
	want.Touched = want.Touched.UTC().Truncate(time.Microsecond)
	wantEqual(t, got, want)
}

func testStatesRoundTrip(t *testing.T, states registry.UploadStates) {
	bare := createUpload(t, states, begin())
	wantState(t, states, bare)

	full := registry.NewUpload(registry.UploadOwner{Repository: "staging/a", Principal: "https://issuer.example.com#sübject'--"}, begin())
	full.Offset, full.Hash, full.Place = 1<<50, []byte{0, 1, 0xff, 0}, `{"file":"ü'\u0000"}`
	full.Touched = time.Date(2026, 11, 21, 9, 8, 7, 123456789, time.FixedZone("", 3600))
	must(t, states.CreateUpload(t.Context(), full))
	wantState(t, states, full)
	wantState(t, states, bare)
}

func testStatesOwner(t *testing.T, states registry.UploadStates) {
	s := createUpload(t, states, begin())
	for _, stranger := range []registry.UploadOwner{
		{}, {Repository: "staging/a"}, {Principal: "alice"}, {Repository: "staging/a", Principal: "bob"},
		{Repository: "staging/b", Principal: "alice"}, {Repository: "staging/a", Principal: "Alice"},
	} {
		_, err := states.Upload(t.Context(), stranger, s.ID)
		wantCode(t, err, registry.CodeNotFound)
	}
	wantState(t, states, s)
}

func testStatesUnknown(t *testing.T, states registry.UploadStates) {
	for _, id := range []string{"", "none", "../x", "\x00", "\xff\xfe", strings.Repeat("a", 5000), "0b9f9a5c-3f0a-4c59-9a56-3e6d1a3c5d10"} {
		_, err := states.Upload(t.Context(), alice, id)
		wantCode(t, err, registry.CodeNotFound)
	}
	never := registry.NewUpload(alice, begin())
	wantCode(t, states.SwapUpload(t.Context(), never), registry.CodeNotFound)
	wantCode(t, states.EndUpload(t.Context(), never.ID, 1), registry.CodeNotFound)
}

func testStatesTaken(t *testing.T, states registry.UploadStates) {
	s := createUpload(t, states, begin())
	again := s
	again.Owner, again.Offset = registry.UploadOwner{Repository: "staging/b"}, 7
	wantCode(t, states.CreateUpload(t.Context(), again), registry.CodeConflict)
	wantState(t, states, s)
}

func testStatesSwap(t *testing.T, states registry.UploadStates) {
	first := createUpload(t, states, begin())
	next := first
	next.Owner = registry.UploadOwner{Repository: "staging/b"} // an upload does not change hands
	next.Offset, next.Hash, next.Place, next.Touched = 7, []byte("state"), "there", begin().Add(time.Hour)
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

func testStatesEnd(t *testing.T, states registry.UploadStates) {
	s, other := createUpload(t, states, begin()), createUpload(t, states, begin())
	must(t, states.SwapUpload(t.Context(), s))
	wantCode(t, states.EndUpload(t.Context(), s.ID, 1), registry.CodeConflict)
	must(t, states.EndUpload(t.Context(), s.ID, 2))
	_, err := states.Upload(t.Context(), alice, s.ID)
	wantCode(t, err, registry.CodeNotFound)
	wantCode(t, states.EndUpload(t.Context(), s.ID, 2), registry.CodeNotFound)
	wantCode(t, states.SwapUpload(t.Context(), s), registry.CodeNotFound)
	wantState(t, states, other)
}

func testStatesStale(t *testing.T, states registry.UploadStates) {
	young := createUpload(t, states, begin())
	old := createUpload(t, states, begin().Add(-2*time.Hour))
	older := createUpload(t, states, begin().Add(-3*time.Hour))
	swapped := createUpload(t, states, begin().Add(-4*time.Hour))
	swapped.Touched = begin()
	must(t, states.SwapUpload(t.Context(), swapped))
	swapped.Version = 2
	got := collect(t, states.StaleUploads(t.Context(), begin()))
	if len(got) != 2 {
		t.Fatalf("stale are %v, want two", got)
	}
	wantSameState(t, got[0], older)
	wantSameState(t, got[1], old)
	wantState(t, states, young)
	wantState(t, states, swapped)
	wantCanceled(t, func(ctx context.Context) iter.Seq2[registry.UploadState, error] {
		return states.StaleUploads(ctx, begin())
	})
}

// Ending uploads while they are listed is what listing them is for.
// Whoever keeps states counts them too.
func testStatesCount(t *testing.T, states registry.UploadStates) {
	counts, ok := states.(registry.UploadCounts)
	if !ok {
		t.Fatalf("%T does not count uploads", states)
	}
	since := begin().Add(time.Second)
	want := func(principal string, want int) {
		t.Helper()
		n, err := counts.CountUploads(t.Context(), principal, since)
		must(t, err)
		wantEqual(t, n, want)
	}
	want("alice", 0)
	createUpload(t, states, begin())
	fresh := createUpload(t, states, since)
	other := registry.NewUpload(registry.UploadOwner{Repository: "staging/b", Principal: "alice"}, since.Add(time.Hour))
	must(t, states.CreateUpload(t.Context(), other))
	nobody := registry.NewUpload(registry.UploadOwner{Repository: "staging/a"}, since)
	must(t, states.CreateUpload(t.Context(), nobody))
	want("alice", 2)
	want("", 1)
	want("bob", 0)
	must(t, states.EndUpload(t.Context(), fresh.ID, 1))
	want("alice", 1)
}

func testStatesManyStale(t *testing.T, states registry.UploadStates) {
	const many = 250
	for range many { // all of the same moment
		createUpload(t, states, begin())
	}
	seen := make(map[string]bool)
	for s, err := range states.StaleUploads(t.Context(), begin().Add(time.Second)) {
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
	wantEqual(t, len(collect(t, states.StaleUploads(t.Context(), begin().Add(time.Second)))), many/2)
}

func testStatesRace(t *testing.T, states registry.UploadStates) {
	s := createUpload(t, states, begin())
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

func testStatesAliased(t *testing.T, states registry.UploadStates) {
	s := registry.NewUpload(alice, begin())
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
