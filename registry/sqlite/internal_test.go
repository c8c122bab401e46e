package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/pressly/goose/v3"

	"mlpromote.dev/mlpromote/migrations"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

func openTest(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// What has been returned from must survive a power failure, which no test can cut.
func TestDurable(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
		var got string
		if err := db.writer.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", pragma, got, want, err)
		}
	}
	if _, err := db.reader.Exec("DELETE FROM tags"); err == nil {
		t.Error("a reader can write")
	}
	var got string
	if err := db.hasty.QueryRow("PRAGMA synchronous").Scan(&got); err != nil || got != "1" {
		t.Errorf("states of uploads wait for the disk: synchronous is %q (%v)", got, err)
	}
}

// Every error here comes from SQLite itself.
func TestInterpretError(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	exec := func(pool *prepared, statement string) error {
		_, err := pool.ExecContext(t.Context(), statement)
		return err
	}
	const row = `INSERT INTO tags VALUES ('r', 't', 'd')`
	if err := exec(db.writer, row); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cause func() error
		code  registry.Code
		says  string
	}{
		"no rows":    {func() error { return db.reader.QueryRow("SELECT 1 WHERE 0").Scan(new(int)) }, registry.CodeNotFound, "not found"},
		"constraint": {func() error { return exec(db.writer, row) }, registry.CodeConflict, "already has a different value"},
		"read-only":  {func() error { return exec(db.reader, row) }, registry.CodeUnavailable, "writable"},
		"busy":       {func() error { return busy(db) }, registry.CodeUnavailable, "kept database"},
		"full": {func() error {
			return exec(db.writer, `PRAGMA max_page_count = 1; INSERT INTO tags VALUES ('r', 'big', hex(zeroblob(1000000)))`)
		}, registry.CodeFull, "no space is left"},
		"statement": {func() error { return exec(db.reader, "SELECT FROM") }, registry.CodeInternal, "syntax error"},
		"canceled":  {func() error { return context.Canceled }, registry.CodeInternal, "canceled"},
		"deadline":  {func() error { return context.DeadlineExceeded }, registry.CodeUnavailable, "deadline"},
		"coded":     {func() error { return registry.Errorf(registry.CodeTrust, "as it was") }, registry.CodeTrust, "as it was"},
	} {
		cause := c.cause()
		if cause == nil {
			t.Errorf("%s: no error came", name)
			continue
		}
		err := db.interpretError("tag t in r", cause)
		if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v (%s), want %q (%s)", name, err, registry.CodeOf(err), c.says, c.code)
		}
		if c.code != registry.CodeNotFound && !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost: %v", name, err)
		}
	}
	if err := db.interpretError("tag t in r", nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}

// busy writes while another process, which does not wait, holds the lock.
func busy(db *DB) error {
	tx, err := db.writer.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	other, err := sql.Open("sqlite", "file:"+db.path)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	_, err = other.Exec("DELETE FROM tags")
	return err
}

func TestNewerSchema(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	if _, err := db.writer.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), db.path)
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("got %v", err)
	}
}

// A database of a program from before the first release is refused as it is, whatever its version, also if it has the mark of an
// earlier commit.
func TestOpenRefusesASchemaFromBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	for version, mark := range map[int]int{1: 0x6d6c7072, 16: 0} {
		path := filepath.Join(t.TempDir(), "catalog.db")
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(fmt.Sprintf(`CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL);
			INSERT INTO goose_db_version VALUES (1, 0, 1), (2, %[1]d, 1);
			CREATE TABLE heads (environment TEXT NOT NULL); PRAGMA user_version = %[1]d; PRAGMA application_id = %[2]d`, version, mark)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first attempt changes nothing
			_, err := Open(t.Context(), path)
			if registry.CodeOf(err) != registry.CodeUnavailable ||
				!strings.Contains(err.Error(), fmt.Sprintf("made by a program from before release 0.1.0 (schema %d", version)) {
				t.Errorf("got %v, want a refusal that names what was found", err)
			}
		}
	}
}

// A database that lost the number of its schema, as in a dump, is refused: which steps are noted as done does not say whose they were.
func TestOpenRefusesASchemaWithoutANumber(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	if _, err := db.writer.Exec("PRAGMA user_version = 0; PRAGMA application_id = 0"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), db.path)
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "has tables but no schema version") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// Every step can be undone, done again, and says which one it is.
func TestMigrationsDownAndUp(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	steps, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.writer.DB, steps, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := db.writer.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tables, indexes and triggers are left (%v)", left, err)
	}
	if version, mark, err := db.version(t.Context()); version != 0 || mark != 0 || err != nil {
		t.Errorf("version %d with mark %d (%v), want 0 and none", version, mark, err)
	}
	for n := int64(0); n != migrations.SQLiteVersion; {
		step, err := provider.UpByOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n = step.Source.Version
		if version, mark, err := db.version(t.Context()); int64(version) != n || mark != migrations.SQLiteMark || err != nil {
			t.Errorf("version %d with mark %x (%v), want %d and %x", version, mark, err, n, migrations.SQLiteMark)
		}
	}
	if pending, err := provider.HasPending(t.Context()); pending || err != nil {
		t.Errorf("SQLiteVersion is not the last step: %v", err)
	}
}

// Rows of the history cannot be changed in passing, and those that were are noticed.
func TestHistoryIsAppendOnly(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for range 2 {
		if _, err := db.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventPublish,
			Environment: "staging", Model: "a"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`UPDATE history SET body = replace(body, 'staging', 'prod')`,
		`DELETE FROM history`,
		`INSERT INTO history (seq, body) VALUES (7, '{"seq":8}')`,
		`INSERT INTO history (seq, body) VALUES (7, 'no event')`,
	} {
		if _, err := db.writer.Exec(statement); err == nil {
			t.Errorf("%s: succeeded", statement)
		}
	}
	forge := `DROP TRIGGER history_append_only_update; PRAGMA ignore_check_constraints = 1;`
	for change, says := range map[string]string{
		`UPDATE history SET body = json_set(body, '$.seq', 0) WHERE seq = 2`:     "stored with another sequence number",
		`UPDATE history SET body = json_set(body, '$.seq', 'two') WHERE seq = 2`: "not an event",
	} {
		if _, err := db.writer.Exec(forge + change); err != nil {
			t.Fatal(err)
		}
		forge = ""
		var last error
		for _, err := range db.History(t.Context(), history.HistoryQuery{}) {
			last = err
		}
		if registry.CodeOf(last) != registry.CodeTrust || !strings.Contains(last.Error(), says) {
			t.Errorf("%s: got %v, want %q", change, last, says)
		}
	}
}

// Writes that share a commit fail alone.
func TestTogether(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	known, unknown := digest.FromString("known"), digest.FromString("unknown")
	if err := db.PutManifest(t.Context(), "r", storage.Manifest{Digest: known}); err != nil {
		t.Fatal(err)
	}
	db.writes.turn <- struct{}{} // no commit begins until all wait
	const n = 20
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			d := known
			if i%5 == 3 {
				d = unknown
			}
			errs[i] = db.SetTag(t.Context(), "r", strconv.Itoa(i), d)
		})
	}
	allWait(t, db.writes, n)
	<-db.writes.turn
	wg.Wait()
	for i, err := range errs {
		want := known
		if i%5 == 3 {
			want = ""
		}
		if got, _ := db.Tag(t.Context(), "r", strconv.Itoa(i)); got != want ||
			registry.HasCode(err, registry.CodeNotFound) != (want == "") || (err != nil) != (want == "") {
			t.Errorf("tag %d is %q (%v), want %q", i, got, err, want)
		}
	}
	if waiting(db.writes) != 0 {
		t.Error("there are still writes that wait")
	}
}

// Changes of uploads that share a transaction fail alone: an upload that another caller continued
// stays, and the others end.
func TestUploadsTogether(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	const n = 20
	var uploads [n]storage.UploadState
	for i := range uploads {
		uploads[i] = storage.NewUpload(storage.UploadOwner{Repository: "r"})
		if err := db.CreateUpload(t.Context(), uploads[i]); err != nil {
			t.Fatal(err)
		}
	}
	continued := func(i int) bool { return i%5 == 3 }
	db.writes.turn <- struct{}{} // no commit begins until all wait
	var errs [n]error
	var wg sync.WaitGroup
	for i, u := range uploads {
		wg.Go(func() {
			version := u.Version
			if continued(i) {
				version++ // as if it had been swapped since
			}
			errs[i] = db.EndUpload(t.Context(), u.ID, version)
		})
	}
	allWait(t, db.writes, n)
	<-db.writes.turn
	wg.Wait()
	for i, u := range uploads {
		_, err := db.Upload(t.Context(), u.Owner, u.ID)
		switch {
		case continued(i) && (!registry.HasCode(errs[i], registry.CodeConflict) || err != nil):
			t.Errorf("end of upload %d, which was continued: %v, then %v; want a conflict, and that it stays", i, errs[i], err)
		case !continued(i) && (errs[i] != nil || !registry.HasCode(err, registry.CodeNotFound)):
			t.Errorf("end of upload %d: %v, then %v; want it to be gone", i, errs[i], err)
		}
	}
}

// Hasty writes wait for the disk only where they share the commit of a durable one, and each that
// fails is tried alone, as it was asked for.
func TestTogetherDurability(t *testing.T) {
	t.Parallel()
	fail := errors.New("does not fit")
	for name, c := range map[string]struct {
		hasty []bool
		fails int // index of the write that fails; -1: none
		want  []string
	}{
		"hasty alone":            {[]bool{true, true}, -1, []string{"hasty 2"}},
		"durable alone":          {[]bool{false, false}, -1, []string{"durable 2"}},
		"one of them is durable": {[]bool{true, false, true}, -1, []string{"durable 3"}},
		"one fails":              {[]bool{true, false, true}, 0, []string{"durable 3", "hasty 1", "durable 1", "hasty 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var commits []string
			record := func(kind string) commit {
				return func(ctx context.Context, changes []change) error {
					commits = append(commits, fmt.Sprintf("%s %d", kind, len(changes)))
					return apply(ctx, nil, changes)
				}
			}
			writes := newCommitGroup(record("durable"), record("hasty"))
			all := make([]*write, len(c.hasty))
			for i, hasty := range c.hasty {
				all[i] = &write{hasty: hasty, done: make(chan struct{}), change: func(context.Context, *dbsqlc.Queries) error {
					if i == c.fails {
						return fail
					}
					return nil
				}}
			}
			writes.finish(t.Context(), all)
			if !slices.Equal(commits, c.want) {
				t.Errorf("commits are %q, want %q", commits, c.want)
			}
			for i, w := range all {
				if <-w.done; errors.Is(w.err, fail) != (i == c.fails) {
					t.Errorf("write %d: %v", i, w.err)
				}
			}
		})
	}
}

// allWait waits until n writes wait for a commit.
func allWait(t *testing.T, writes *commitGroup, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); waiting(writes) < n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d writes wait, want %d", waiting(writes), n)
		}
	}
}

func waiting(writes *commitGroup) int {
	writes.mu.Lock()
	defer writes.mu.Unlock()
	return len(writes.waiting)
}
