package sqlite_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// identity opens the catalog at path and returns its identity.
func identity(t *testing.T, path string) storage.CatalogIdentity {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id, err := db.CatalogIdentity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Who signed out after a backup stays signed out when it is restored: no session of it goes on. An interrupted
// restore that goes on ends none that began since.
func TestRenewEndsSessions(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	begin := func(id string) {
		t.Helper()
		made := time.Now()
		s := storage.Session{ID: id, Hash: sha256.Sum256([]byte(id)), Owner: "token:ana", Token: "ana", Created: made, Expires: made.Add(time.Hour)}
		if err := db.CreateSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if _, err := db.FindSession(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	begin("before")
	if err := db.Renew(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if s, err := db.FindSession(t.Context(), "before"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("after a restore: session %+v, error %v, want none", s, err)
	}
	begin("since")
	if err := db.Renew(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.FindSession(t.Context(), "since"); err != nil {
		t.Errorf("after the same restore again: %v, want the session", err)
	}
}

// A copy of the file is the same catalog in another place. A restored one is another catalog that
// knows its origin.
func TestRenew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	original := identity(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := identity(t, copied); got.ID != original.ID || got.Instance == original.Instance {
		t.Errorf("the copy is %+v, want the ID of %+v and another instance", got, original)
	}
	for _, id := range []string{"second", "second", "third"} {
		db, err := sqlite.Open(t.Context(), copied)
		if err != nil {
			t.Fatal(err)
		}
		before, err := db.CatalogIdentity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after := before
		after.Storage, after.Epoch = "s3://models", 7
		if err := db.RecordContent(t.Context(), before, after); id != before.ID && err != nil {
			t.Fatal(err)
		}
		if err := db.Renew(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		got := identity(t, copied)
		if got.ID != id || !slices.Contains(got.Origins, original.ID) || id != before.ID && got.Epoch != 0 {
			t.Errorf("renewed as %s it is %+v, want that ID, the origin %s and no content", id, got, original.ID)
		}
	}
	if got := identity(t, copied); !slices.Equal(got.Origins, []string{"second", original.ID}) {
		t.Errorf("its origins are %v, want the second and then the original", got.Origins)
	}
}
