package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
)

// The embedded default never replaces a file that was lost: it may trust a key that the file
// had revoked.
func TestEnvironmentsGone(t *testing.T) {
	t.Parallel()
	f, db := newFolder(t), mem.New()
	own := read(t, f)
	if err := use(t, f, db, own); err != nil {
		t.Fatalf("with the file: %v", err)
	}
	path := filepath.Join(f.dir, "environments.yaml")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	own = read(t, f)
	for what, err := range map[string]error{
		"a command that writes": settleNow(t, f, db, own),
		"a command that reads":  config.CheckPresent(t.Context(), own, agreedIn(db)),
		"a service":             keepAlone(t, f, db),
	} {
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "environments.yaml is gone") {
			t.Errorf("%s without the file: got %v, want CodeInvalid that says the file is gone", what, err)
		}
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := use(t, f, db, read(t, f)); err != nil {
		t.Errorf("with the file again: %v", err)
	}
}

// A directory that never had the file uses the default, before and after the first build makes
// its key. Replacing that key is refused.
func TestDefaultFromTheStart(t *testing.T) {
	t.Parallel()
	f, db := folder{t.TempDir()}, mem.New()
	if err := use(t, f, db, read(t, f)); err != nil {
		t.Fatalf("without a key: %v", err)
	}
	if err := os.Mkdir(filepath.Join(f.dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.key(t, "keys/local.pub")
	if err := use(t, f, db, read(t, f)); err != nil {
		t.Errorf("after the first build: %v", err)
	}
	f.key(t, "keys/local.pub")
	if err := use(t, f, db, read(t, f)); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("with another key: got %v, want CodeInvalid", err)
	}
}

func read(t *testing.T, f folder) config.Snapshot {
	t.Helper()
	own, err := f.files().Read()
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// use does what a command that writes does, then what one that reads does.
func use(t *testing.T, f folder, db *mem.DB, own config.Snapshot) error {
	t.Helper()
	if err := settleNow(t, f, db, own); err != nil {
		return err
	}
	return config.CheckPresent(t.Context(), own, agreedIn(db))
}

func settleNow(t *testing.T, f folder, db *mem.DB, own config.Snapshot) error {
	t.Helper()
	return config.Settle(t.Context(), db, own, f.files().Read, time.Unix(1e9, 0))
}

func agreedIn(db *mem.DB) func(context.Context) (history.Configuration, error) {
	return func(ctx context.Context) (history.Configuration, error) {
		return db.Agreed(ctx, history.Configuration{})
	}
}

func keepAlone(t *testing.T, f folder, db *mem.DB) error {
	t.Helper()
	_, err := config.Keep(t.Context(), config.Options[config.Snapshot]{
		Read: f.files().Read, Catalog: db, Alone: true,
		Build: func(_ context.Context, s config.Snapshot) (config.Snapshot, error) { return s, nil },
	})
	return err
}
