package service_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// pantry is a store, safe beside collectors, of which some bytes are marked.
type pantry struct {
	t     *testing.T
	db    *mem.DB
	bytes *mem.Blobs
	blobs storage.Blobs
	refs  storage.RepositoryRecords
}

const goods = "goods"

func newPantry(t *testing.T, remover storage.Remover) *pantry {
	t.Helper()
	p := &pantry{t: t, db: mem.New(), bytes: mem.NewBlobs()}
	safe := gc.SafeStore{Garbage: p.db, Remover: remover}
	if remover == nil {
		safe.Remover = p.bytes
	}
	p.blobs, p.refs = safe.Blobs(p.bytes), safe.Refs(p.db, p.bytes)
	p.must(p.put())
	p.must(p.db.Mark(t.Context(), time.Now(), []registry.Digest{p.digest()}))
	return p
}

func (p *pantry) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pantry) digest() registry.Digest { return digest.FromString(goods) }

func (p *pantry) put() error {
	return p.blobs.Put(p.t.Context(), p.digest(), int64(len(goods)), strings.NewReader(goods))
}

func (p *pantry) add() error {
	return p.refs.AddBlob(p.t.Context(), "staging/a", p.digest(), int64(len(goods)))
}

func (p *pantry) addManifest() error {
	return p.refs.PutManifest(p.t.Context(), "staging/a", storage.Manifest{Digest: p.digest(), Size: int64(len(goods))}, "1.0.0")
}

// begin begins to remove the goods.
func (p *pantry) begin(id string) {
	p.t.Helper()
	begun, err := p.db.BeginRemoval(p.t.Context(), storage.RemovalRequest{
		ID: id, Digests: []registry.Digest{p.digest()}, Before: time.Now(), Lasting: storage.RemovalTime,
	})
	if err != nil || len(begun) != 1 {
		p.t.Fatalf("a removal of %v began (%v), want one of the goods", begun, err)
	}
}

func (p *pantry) end(id string) {
	p.t.Helper()
	p.must(p.db.EndRemoval(p.t.Context(), id, []registry.Digest{p.digest()}, nil))
}

// there wants the bytes to be stored, or not.
func (p *pantry) there(want bool) {
	p.t.Helper()
	_, _, err := p.bytes.Open(p.t.Context(), p.digest())
	if got := err == nil; got != want {
		p.t.Errorf("the bytes are there: %t, want %t", got, want)
	}
}

// waits wants something to take so long, or until it looks again.
func (p *pantry) waits(do func() error, want time.Duration) {
	p.t.Helper()
	began := time.Now()
	p.must(do())
	if took := time.Since(began); took < want || took > want+time.Second/10 {
		p.t.Errorf("it took %v, want %v", took, want)
	}
}

// Who stores what is just being removed waits, and stores it when it is gone.
func TestPutWaitsForRemoval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPantry(t, nil)
		p.begin("one")
		time.AfterFunc(time.Second, func() {
			p.must(p.bytes.Delete(t.Context(), p.digest()))
			p.end("one")
		})
		p.waits(p.put, time.Second)
		p.there(true)
		p.waits(p.add, 0)
	})
}

// A removal whose collector is gone ends by itself.
func TestPutTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPantry(t, nil)
		p.begin("one")
		p.waits(p.put, storage.RemovalTime)
		p.waits(p.add, 0)
		if confirmed, err := p.db.ConfirmRemoval(t.Context(), "one", 0); confirmed || err != nil {
			t.Errorf("the removal lasts on: %t, %v", confirmed, err)
		}
	})
}

// gatekeeper is a remover one of whose permits is in use.
type gatekeeper struct {
	storage.Remover
	closed chan struct{}
}

func (g gatekeeper) Await(ctx context.Context) error {
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
		return registry.Errorf(registry.CodeUnavailable, "a permit is in use: %w", ctx.Err())
	}
}

// One that has ended by itself is not over before its permits are.
func TestPutAwaitsPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := gatekeeper{closed: make(chan struct{})}
		p := newPantry(t, keeper)
		p.begin("one")
		const late = storage.RemovalTime + time.Hour
		time.AfterFunc(late, func() {
			p.must(p.bytes.Delete(t.Context(), p.digest()))
			close(keeper.closed)
		})
		p.waits(p.put, late)
		p.there(true)
	})
}

// Who does not want to wait so long is told to try again.
func TestPutGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPantry(t, nil)
		p.begin("one")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.blobs.Put(ctx, p.digest(), int64(len(goods)), strings.NewReader(goods)); registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("got %v, want CodeUnavailable", err)
		}
	})
}

// Bytes that went between the moment at which they were stored and the one at which a
// repository holds them are not acknowledged, and can be sent again.
func TestAddVerifies(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(*pantry) error{"blob": (*pantry).add, "manifest": (*pantry).addManifest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPantry(t, nil)
				p.begin("gone")
				p.must(p.bytes.Delete(t.Context(), p.digest()))
				p.end("gone")
				if err := add(p); registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "send it again") {
					t.Errorf("without the bytes: %v, want CodeUnavailable", err)
				}
				p.must(p.put())
				p.must(add(p))
				p.there(true)
			})
		})
	}
}

// What is just being removed when a repository begins to hold it is waited for.
func TestAddDuringRemoval(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"deleted": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPantry(t, nil)
				p.begin("one")
				time.AfterFunc(time.Second, func() {
					if deleted {
						p.must(p.bytes.Delete(t.Context(), p.digest()))
						p.end("one")
						return
					}
					p.must(p.db.EndRemoval(t.Context(), "one", nil, []registry.Digest{p.digest()}))
				})
				if err := p.add(); deleted != (registry.CodeOf(err) == registry.CodeUnavailable && err != nil) {
					t.Errorf("got %v", err)
				}
				p.there(!deleted)
			})
		})
	}
}
