package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// cutter is the way to a server, which breaks at the next commit when it is told to.
type cutter struct {
	listener net.Listener
	direct   string                 // URL of the database
	server   string                 // its HOST:PORT
	cut      atomic.Pointer[string] // before or after the commit reaches the server; nil: not at all
	closed   atomic.Bool            // for new connections
	lost     func()                 // called when the server has lost a client that does not know it yet; may be nil
}

func newCutter(t *testing.T) *cutter {
	t.Helper()
	direct := pgtest.Database(t)
	server, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c := &cutter{listener: listener, direct: direct, server: server.Host}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	return c
}

// carry relays a connection in both directions.
func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil || c.closed.Load() {
		return
	}
	defer server.Close()
	var mute, unaware atomic.Bool
	go func() {
		defer func() {
			if !unaware.Load() {
				_ = client.Close()
			}
		}()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if mute.Load() || err != nil {
				return // the answer to the commit goes no further
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.HasSuffix(buffer[:n], []byte("commit\x00")) {
			if when := c.cut.Swap(nil); when != nil {
				if *when == "before" {
					unaware.Store(true)
					_ = server.Close()
					if c.lost != nil {
						c.lost()
					}
					return
				}
				mute.Store(true)
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if mute.Load() {
			_, _ = io.Copy(io.Discard, client) // until the answer came and the client was cut off
			return
		}
	}
}

// throughCutter is a database of its own, and the way to it.
func throughCutter(t *testing.T) (*DB, *cutter) {
	t.Helper()
	way := newCutter(t)
	db, err := Open(t.Context(), strings.Replace(way.direct, way.server, way.listener.Addr().String(), 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, way
}

func publication(version string) storage.Change {
	return storage.Change{Event: history.Event{Kind: history.EventPublish, Environment: "staging", Model: "a", Version: version}}
}

// Whoever is not told how a commit ended finds out.
func TestAnswerToCommitIsLost(t *testing.T) {
	t.Parallel()
	db, way := throughCutter(t)
	var want []string
	for n, when := range []string{"", "after", "before", "", "before", "after"} {
		if when != "" {
			way.cut.Store(&when)
		}
		version := fmt.Sprint(n)
		event, err := db.Apply(t.Context(), publication(version))
		if way.cut.Load() != nil {
			t.Fatal("no commit came by: the test tests nothing")
		}
		switch {
		case when == "before" && (registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "nothing has changed")):
			t.Errorf("cut off before the commit: got %v (%s)", err, registry.CodeOf(err))
		case when != "before" && (err != nil || event.Version != version):
			t.Errorf("%q: got %+v, %v", when, event, err)
		case when != "before":
			want = append(want, version)
		}
	}
	var got []string
	var last history.Event
	for event, err := range db.History(t.Context(), history.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := event.VerifyChain(last); err != nil {
			t.Error(err)
		}
		got, last = append(got, event.Version), event
	}
	if !slices.Equal(got, want) {
		t.Errorf("history has %q, want %q", got, want)
	}
}

// Whoever took the place in the history is not taken for the change whose commit was lost.
func TestPlaceOfLostCommitIsTaken(t *testing.T) {
	t.Parallel()
	db, way := throughCutter(t)
	other, err := Open(t.Context(), way.direct)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before := "before"
	way.lost = func() {
		if _, err := other.Apply(t.Context(), publication("2.0.0")); err != nil {
			t.Error(err)
		}
	}
	way.cut.Store(&before)
	if event, err := db.Apply(t.Context(), publication("1.0.0")); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("got %+v, %v (%s)", event, err, registry.CodeOf(err))
	}
	for event, err := range db.History(t.Context(), history.HistoryQuery{}) {
		if err != nil || event.Version != "2.0.0" {
			t.Errorf("history has %+v, %v", event, err)
		}
	}
}

// Where nobody can find out, the error says that the outcome is open.
func TestOutcomeOfCommitStaysOpen(t *testing.T) {
	t.Parallel()
	db, way := throughCutter(t)
	after := "after"
	way.cut.Store(&after)
	way.closed.Store(true)
	db.patience = 500 * time.Millisecond
	_, err := db.Apply(t.Context(), publication("1.0.0"))
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "it is unknown whether the change was made") {
		t.Errorf("got %v (%s)", err, registry.CodeOf(err))
	}
}

// A caller who goes away while his change is committed leaves nothing open behind.
func TestCallerGoesDuringCommit(t *testing.T) {
	t.Parallel()
	db, _ := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		defer cancel()
		return q.BlobAdd(ctx, dbsqlc.BlobAddParams{Repository: "a", Digest: "b", Size: 1})
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := db.Blob(t.Context(), "a", "b"); err != nil {
		t.Error(err)
	}
}
