package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Exec runs a statement in the database of a URL.
func Exec(ctx context.Context, url, statement string, arguments ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement, arguments...)
	return err
}

// Row reads the only row of a query in the database of a URL.
func Row(ctx context.Context, url, query string, into ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.QueryRow(ctx, query).Scan(into...)
}

// Clock replaces the clock of the catalog by one that stands still. The database must have its
// schema. Clock returns a function that advances the clock.
func Clock(t testing.TB, url string, now time.Time) (pass func(time.Duration)) {
	t.Helper()
	exec := func(statement string, arguments ...any) {
		t.Helper()
		if err := Exec(t.Context(), url, statement, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE test_clock (at timestamptz NOT NULL)`)
	exec(`INSERT INTO test_clock VALUES ($1)`, now)
	exec(`CREATE OR REPLACE FUNCTION catalog_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM test_clock'`)
	return func(d time.Duration) {
		t.Helper()
		exec(`UPDATE test_clock SET at = at + $1 * interval '1 microsecond'`, d.Microseconds())
	}
}
