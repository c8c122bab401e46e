package postgres

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"mlpromote.dev/mlpromote/migrations"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func openTest(t *testing.T) (*DB, string) {
	t.Helper()
	url := pgtest.Database(t)
	return openURL(t, url), url
}

func openURL(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *DB, statement string) error {
	t.Helper()
	_, err := db.pool.Exec(t.Context(), statement)
	return err
}

// Every error here comes from PostgreSQL or from the way to it.
func TestInterpretError(t *testing.T) {
	t.Parallel()
	db, url := openTest(t)
	const row = `INSERT INTO tags VALUES ('r', 't', 'd')`
	if err := exec(t, db, row); err != nil {
		t.Fatal(err)
	}
	raise := func(code string) func() error {
		return func() error {
			return exec(t, db, `DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '`+code+`'; END $$`)
		}
	}
	connect := func(to string) func() error {
		return func() error {
			conn, err := pgx.Connect(t.Context(), to)
			if err == nil {
				_ = conn.Close(t.Context())
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		cause func() error
		code  registry.Code
		says  string
	}{
		"no rows": {func() error {
			return db.pool.QueryRow(t.Context(), "SELECT 1 WHERE false").Scan(new(int))
		}, registry.CodeNotFound, "not found"},
		"constraint": {func() error { return exec(t, db, row) }, registry.CodeConflict, "already has a different value"},
		"read-only": {func() error {
			return exec(t, db, `BEGIN READ ONLY; INSERT INTO tags VALUES ('r', 'u', 'd')`)
		}, registry.CodeUnavailable, "standby"},
		"statement timeout":   {func() error { return exec(t, db, `SET LOCAL statement_timeout = 1; SELECT pg_sleep(60)`) }, registry.CodeUnavailable, "busy"},
		"idle in transaction": {raise("25P03"), registry.CodeUnavailable, "try again"},
		"transaction timeout": {raise("25P04"), registry.CodeUnavailable, "try again"},
		"serialization":       {raise(serializationFailure), registry.CodeUnavailable, "try again"},
		"too many clients":    {raise("53300"), registry.CodeUnavailable, "is unavailable"},
		"disk full":           {raise(diskFull), registry.CodeUnavailable, "no space is left"},
		"shutting down":       {raise("57P01"), registry.CodeUnavailable, "try again"},
		"starting up":         {raise("57P03"), registry.CodeUnavailable, "try again"},
		"connection failure":  {raise("08006"), registry.CodeUnavailable, "try again"},
		"privilege":           {raise(insufficientPrivilege), registry.CodeUnavailable, "must own it"},
		"damage":              {raise("XX001"), registry.CodeInternal, "damaged"},
		"statement":           {func() error { return exec(t, db, "SELECT FROM WHERE") }, registry.CodeInternal, "syntax error"},
		"killed": {func() error {
			return exec(t, db, "SELECT pg_terminate_backend(pg_backend_pid())")
		}, registry.CodeUnavailable, "try again"},
		"no such database": {connect(url + "_not"), registry.CodeUnavailable, "check the database name"},
		"wrong password":   {connect(strings.Replace(url, "@", "x@", 1)), registry.CodeUnavailable, "password"},
		"refused":          {connect("postgres://nobody@127.0.0.1:1/none"), registry.CodeUnavailable, "cannot be reached"},
		"no such host":     {connect("postgres://nobody@host.invalid/none"), registry.CodeUnavailable, "cannot be reached"},
		"canceled":         {func() error { return context.Canceled }, registry.CodeInternal, "canceled"},
		"deadline":         {func() error { return context.DeadlineExceeded }, registry.CodeUnavailable, "deadline"},
		"coded":            {func() error { return registry.Errorf(registry.CodeTrust, "as it was") }, registry.CodeTrust, "as it was"},
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

// Rows of the history cannot be changed in passing, and those that were are noticed.
func TestHistoryIsAppendOnly(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	for range 2 {
		if _, err := db.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventPublish, Environment: "staging", Model: "a", Reason: `"model":"b`}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`UPDATE history SET body = replace(body, 'staging', 'prod')`,
		`DELETE FROM history`,
		`TRUNCATE history`,
		`INSERT INTO history (seq, body) SELECT 7, replace(body, '"seq":2', '"seq":8') FROM history WHERE seq = 2`,
		`INSERT INTO history (seq, body) SELECT 7, replace(body, '"seq":2', '"seq":7') || '}' FROM history WHERE seq = 2`,
		`INSERT INTO history (seq, body) VALUES (7, '{"seq":7}')`,
		`INSERT INTO history (seq, body) VALUES (7, 'no event')`,
		`INSERT INTO history (seq, body, model) SELECT 7, replace(body, '"seq":2', '"seq":7'), 'other' FROM history WHERE seq = 2`,
	} {
		if err := exec(t, db, statement); err == nil {
			t.Errorf("%s: succeeded", statement)
		}
	}
	var model string
	if err := db.pool.QueryRow(t.Context(), `SELECT DISTINCT model FROM history`).Scan(&model); err != nil || model != "a" {
		t.Errorf("the model is read as %q (%v), want a: a reason looks like a field", model, err)
	}
	forge := `ALTER TABLE history DISABLE TRIGGER ALL; ALTER TABLE history DROP CONSTRAINT history_check, DROP CONSTRAINT history_body_check;`
	for change, says := range map[string]string{
		`UPDATE history SET body = replace(body, '"seq":2', '"seq":0') WHERE seq = 2`:     "stored with another sequence number",
		`UPDATE history SET body = replace(body, '"seq":2', '"seq":"two"') WHERE seq = 2`: "not an event",
	} {
		if err := exec(t, db, forge+change); err != nil {
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
		if err := exec(t, db, `UPDATE history SET body = regexp_replace(body, '"seq":("two"|0)', '"seq":2') WHERE seq = 2`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewerSchema(t *testing.T) {
	t.Parallel()
	db, url := openTest(t)
	if err := exec(t, db, "UPDATE catalog SET schema_version = 99"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), url)
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("got %v", err)
	}
}

// A database of a program from before the first release is refused as it is.
func TestOpenRefusesASchemaFromBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	if _, err := db.Exec(t.Context(), `CREATE TABLE goose_db_version (id integer PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL);
		INSERT INTO goose_db_version VALUES (1, 0, true), (2, 11, true);
		CREATE TABLE catalog (id uuid NOT NULL DEFAULT gen_random_uuid(), version integer NOT NULL, one boolean PRIMARY KEY DEFAULT true CHECK (one));
		INSERT INTO catalog (version) VALUES (11)`); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first attempt changes nothing
		_, err = Open(t.Context(), url)
		if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "made by a program from before release 0.1.0") {
			t.Errorf("got %v, want a refusal that names what was found", err)
		}
	}
	var tables int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 2 {
		t.Errorf("%d tables (%v), want the 2 of before", tables, err)
	}
}

// So is a database of an earlier commit that has this number of the schema and other tables.
func TestOpenRefusesTheSchemaOfAnEarlierCommit(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"UPDATE catalog SET schema_mark = 1", "ALTER TABLE catalog DROP COLUMN schema_mark"} {
		db, url := openTest(t)
		if err := exec(t, db, change); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), url)
		if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "made by a program from before release 0.1.0") {
			t.Errorf("%s: got %v, want a refusal", change, err)
		}
	}
}

// A database that lost the number of its schema is refused: which steps are noted as done does not say whose they were.
func TestOpenRefusesASchemaWithoutANumber(t *testing.T) {
	t.Parallel()
	db, url := openTest(t)
	if err := exec(t, db, "DELETE FROM catalog"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), url)
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "has tables but no schema version") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// Every step can be undone, done again, and says which one it is.
func TestMigrationsDownAndUp(t *testing.T) {
	t.Parallel()
	db, url := openTest(t)
	steps, err := fs.Sub(migrations.Postgres, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	pool := stdlib.OpenDBFromPool(db.pool)
	defer pool.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, pool, steps, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var left int
	err = db.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'goose%')
		+ (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d tables, indexes and functions are left (%v)", left, err)
	}
	if done, err := db.current(t.Context()); done || err != nil {
		t.Errorf("the schema counts as current: %v", err)
	}
	for n := int32(0); n != migrations.PostgresVersion; {
		step, err := provider.UpByOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n = int32(step.Source.Version)
		if row, err := db.queries().CatalogGet(t.Context()); row.SchemaVersion != n || err != nil {
			t.Errorf("version %d (%v), want %d", row.SchemaVersion, err, n)
		}
	}
	if pending, err := provider.HasPending(t.Context()); pending || err != nil {
		t.Errorf("PostgresVersion is not the last step: %v", err)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), url)
	if err != nil {
		t.Fatalf("open after everything was undone: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// Two transactions that wait for each other both get through in the end.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	for _, tag := range []string{"a", "b"} {
		if err := exec(t, db, `INSERT INTO tags VALUES ('r', '`+tag+`', 'before')`); err != nil {
			t.Fatal(err)
		}
	}
	var met, done sync.WaitGroup
	var calls atomic.Int32
	met.Add(2)
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		done.Go(func() {
			first := true
			err := db.transaction(t.Context(), func(ctx context.Context, q *dbsqlc.Queries) error {
				calls.Add(1)
				for n, tag := range order {
					if _, err := q.TagSet(ctx, dbsqlc.TagSetParams{Repository: "r", Tag: tag, Digest: "after"}); err != nil {
						return err
					}
					if n == 0 && first {
						first = false
						met.Done()
						met.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
	}
	done.Wait()
	// Whoever is tried again may meet the other once more.
	if calls.Load() < 3 {
		t.Errorf("the changes were made %d times, want one of the two once more", calls.Load())
	}
}

// A server that is told not to wait for its disk waits for us, and one that would wait for
// a client that is gone does not.
func TestSettings(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"synchronous_commit=off":                   "on",
		"synchronous_commit=remote_apply":          "remote_apply",
		"idle_in_transaction_session_timeout=0":    "20s",
		"idle_in_transaction_session_timeout=5000": "5s",
	} {
		db, err := Open(t.Context(), pgtest.Database(t)+"?"+set)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		name, _, _ := strings.Cut(set, "=")
		if err := db.pool.QueryRow(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
			t.Errorf("a server with %s: %q (%v), want %q", set, got, err, want)
		}
		_ = db.Close()
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	if err := server.Exec(t.Context(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	if err := server.Exec(t.Context(), "CREATE ROLE reader LOGIN PASSWORD 'secret'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP DATABASE latin", "DROP ROLE reader"} {
			if err := server.Exec(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Error(err)
			}
		}
	})
	for url, want := range map[string]struct {
		code registry.Code
		says string
	}{
		"":                                 {registry.CodeInvalid, "want postgres://"},
		"host=/run/postgresql":             {registry.CodeInvalid, "want postgres://"},
		"mysql://user:secret@h/db":         {registry.CodeInvalid, "want postgres://"},
		"postgres://user:sec%ret@h/db":     {registry.CodeInvalid, "want postgres://"},
		"postgres://user:secret@h:port/db": {registry.CodeInvalid, "want postgres://"},
		"postgres://user:secret@h/db?sslmode=never":                         {registry.CodeInvalid, "sslmode"},
		"postgres://user:secret@127.0.0.1:1/db":                             {registry.CodeUnavailable, "127.0.0.1:1/db cannot be reached"},
		server.URL("latin"):                                                 {registry.CodeUnavailable, "encoding LATIN1"},
		"postgres://reader:secret@" + server.Address() + "/postgres":        {registry.CodeUnavailable, "must own it"},
		"postgres://reader:secret+wrong@" + server.Address() + "/postgres":  {registry.CodeUnavailable, "password"},
		"postgres://reader:secret@" + server.Address() + "/is-not-anywhere": {registry.CodeUnavailable, "check the database name"},
	} {
		db, err := Open(t.Context(), url)
		if err == nil {
			_ = db.Close()
			t.Errorf("%s: opened", url)
			continue
		}
		text := strings.Join(append(registry.Hints(err), err.Error()), "\n")
		if registry.CodeOf(err) != want.code || !strings.Contains(text, want.says) {
			t.Errorf("%s: got %s (%s), want %q (%s)", url, text, registry.CodeOf(err), want.says, want.code)
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "sec%") {
			t.Errorf("%s: the password is told: %s", url, text)
		}
	}
}

// A password need not stand in the URL.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	path := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(path, []byte("*:*:*:*:"+server.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := strings.Replace(pgtest.Database(t), ":"+server.Password, "", 1)
	if db, err := Open(t.Context(), bare); err == nil {
		_ = db.Close()
		t.Fatal("the server asks for no password: the test tests nothing")
	}
	db, err := Open(t.Context(), bare+"?passfile="+path)
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
}
