package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A snapshot is of one instant, whoever writes meanwhile, and changes nothing.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	happen := func(n int) bool {
		_, err := db.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventAttach,
			Environment: "staging", Model: "m", Reason: fmt.Sprint(n)}})
		if err != nil {
			t.Error(err)
		}
		return err == nil
	}
	happen(0) // the other ones may come late
	writing.Go(func() {
		for n := 1; ctx.Err() == nil && happen(n); n++ {
		}
	})
	var before int64
	for n := range 5 {
		into := filepath.Join(dir, fmt.Sprint(n))
		if err := sqlite.Snapshot(t.Context(), path, into); err != nil {
			t.Fatal(err)
		}
		before = max(before, events(t, into))
	}
	stop()
	writing.Wait()
	// Keys and secrets are in all of them, and folders may be open to others.
	for _, name := range []string{"registry.db", "registry.db-wal", "0"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v, want it to be its owner's alone", name, info.Mode(), err)
		}
	}
	if after := events(t, path); before == 0 || after < before {
		t.Errorf("%d events in a snapshot, %d now", before, after)
	}
	if err := sqlite.Snapshot(t.Context(), path, filepath.Join(dir, "0")); !registry.HasCode(err, registry.CodeConflict) {
		t.Errorf("a snapshot over another: %v", err)
	}
	if err := sqlite.Snapshot(t.Context(), filepath.Join(dir, "none"), filepath.Join(dir, "of-none")); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("a snapshot of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a snapshot of nothing made a database")
	}
}

// events counts the rows of a history, whose chain must hold.
func events(t *testing.T, path string) int64 {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var last history.Event
	for e, err := range db.History(t.Context(), history.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := e.VerifyChain(last); err != nil {
			t.Fatal(err)
		}
		last = e
	}
	return last.Seq
}
