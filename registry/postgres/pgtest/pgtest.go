// Package pgtest starts PostgreSQL servers for tests: real ones, from the programs that
// are installed, each in a temporary folder and gone with the test or its process,
// however that ends. Databases sort texts as people do, not by bytes, as servers out
// there may.
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

// Database makes an empty database on the server that [Shared] gives, and gives its URL.
// It goes with the test.
func Database(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared is the server that the tests of this process share. It goes with the process, and
// does not sync to disk. A test on a machine without PostgreSQL is skipped.
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

// New starts a server that the test has to itself, with settings such as
// "shared_buffers=1GB". It is stopped with the test. A test on a machine without
// PostgreSQL is skipped.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := newServer("", settings...)
	if err != nil {
		give(t, err)
	}
	t.Cleanup(s.remove)
	return s
}

// give ends a test that cannot have a server.
func give(t testing.TB, err error) {
	t.Helper()
	if missing, ok := err.(*missingError); ok { //nolint:errorlint // made here, wrapped nowhere
		t.Skip(missing)
	}
	t.Fatal(err)
}

// superuser is the only user of every server.
const superuser = "mlpromote"

// databases numbers databases, so that no two have the same name.
var databases atomic.Int64

// Database makes an empty database and gives its URL. It goes with the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if err := s.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A server that is stopped by now is removed as a whole.
		_ = s.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return s.URL(name)
}

// URL is that of a database, with user and password, over TCP.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, s.Password), Host: s.Address(), Path: database}
	return u.String()
}

// SocketURL is that of a database over the Unix socket, where no password is asked for.
func (s *Server) SocketURL(database string) string {
	q := url.Values{"host": {s.dir}, "port": {fmt.Sprint(s.port)}}
	return fmt.Sprintf("postgres://%s@/%s?%s", superuser, database, q.Encode())
}

// Exec runs a statement of an administrator.
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
