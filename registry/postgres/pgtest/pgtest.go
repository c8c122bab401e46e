// Package pgtest starts real PostgreSQL servers for tests, from the installed programs. Each
// server has a temporary folder and ends with its test or process, even if that is killed. Its
// databases sort texts by language rules instead of bytes, as real servers may.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Database creates an empty database on the server of [Shared] and returns its URL. It is
// deleted with the test.
func Database(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared returns the server that the tests of this process share. It ends with the process and
// does not sync to disk. It skips the test on a machine without PostgreSQL.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	if err != nil {
		give(t, err)
	}
	return s
}

var shared = sync.OnceValues(func() (*Server, error) {
	return newServer(scratch(), "fsync=off", "full_page_writes=off")
})

// New starts a server only for this test, with settings such as "shared_buffers=1GB". It ends
// with the test. New skips the test on a machine without PostgreSQL.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := newServer("", settings...)
	if err != nil {
		give(t, err)
	}
	t.Cleanup(s.remove)
	return s
}

// give fails or skips a test that cannot have a server.
func give(t testing.TB, err error) {
	t.Helper()
	if missing, ok := err.(*missingError); ok { //nolint:errorlint // made here, wrapped nowhere
		t.Skip(missing)
	}
	t.Fatal(err)
}

// superuser is the only user of every server.
const superuser = "mlpromote"

// databases counts databases to give them unique names.
var databases atomic.Int64

// Database creates an empty database and returns its URL. It is deleted with the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if err := s.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A stopped server is deleted as a whole.
		_ = s.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return s.URL(name)
}

// URL returns the URL of a database, with user and password, over TCP.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, s.Password), Host: s.Address(), Path: database}
	return u.String()
}

// SocketURL returns the URL of a database over the Unix socket, which needs no password.
func (s *Server) SocketURL(database string) string {
	q := url.Values{"host": {s.dir}, "port": {fmt.Sprint(s.port)}}
	return fmt.Sprintf("postgres://%s@/%s?%s", superuser, database, q.Encode())
}

// Exec runs a statement as administrator.
func (s *Server) Exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// Copy copies the database of a URL, as a restored dump would be, and returns the URL of the
// copy. The original must not have connections.
func (s *Server) Copy(t testing.TB, url string) string {
	t.Helper()
	from, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	if err := s.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE "+pgx.Identifier{from.Database}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)") })
	return s.URL(name)
}

// Run runs statements in the database of a URL.
func Run(ctx context.Context, url string, statements ...string) error {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func password() string { return rand.Text() }
