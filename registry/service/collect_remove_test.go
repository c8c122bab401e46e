package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// slowRemover takes time for every deletion, and looks whether there is enough of it left.
type slowRemover struct {
	t     *testing.T
	db    *mem.DB
	bytes *mem.Blobs
	takes time.Duration
	fails registry.Digest // it cannot be deleted
	given int             // permits
	ids   map[string]bool // removals
}

func (r *slowRemover) Await(context.Context) error { return nil }

func (r *slowRemover) Repeatable() bool { return false }

func (r *slowRemover) Permit(context.Context) (storage.Permit, error) {
	r.given++
	return slowPermit{r, time.Now()}, nil
}

type slowPermit struct {
	r     *slowRemover
	given time.Time
}

func (p slowPermit) Close() error { return nil }

func (p slowPermit) Delete(ctx context.Context, d registry.Digest) error {
	removal, err := p.r.db.Unmark(ctx, d)
	if err != nil || removal.ID == "" {
		p.r.t.Errorf("%s is deleted outside of a removal (%v)", d, err)
	}
	p.r.ids[removal.ID] = true
	if left := time.Until(p.given.Add(storage.PermitTime)); removal.Left < left+storage.RemovalMargin {
		p.r.t.Errorf("the removal lasts for %v where the permit does for %v", removal.Left, left)
	}
	time.Sleep(p.r.takes) // of a bubble
	if d == p.r.fails {
		return errInjected
	}
	return p.r.bytes.Delete(ctx, d)
}

// garbage is a store with so many blobs that nothing needs, and a collector that has it to
// itself.
func garbage(t *testing.T, n int) (*slowRemover, *gc.Collector) {
	t.Helper()
	r := &slowRemover{t: t, db: mem.New(), bytes: mem.NewBlobs(), ids: make(map[string]bool)}
	for i := range n {
		content := fmt.Sprint("garbage ", i)
		if err := r.bytes.Put(t.Context(), digest.FromString(content), int64(len(content)), strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := gc.New(gc.Config{
		Store: r.db, Catalog: r.db, Intents: r.db, Blobs: r.bytes, Remover: r, Garbage: r.db, Clock: r.db, Owner: registrytest.Owned{}, Lock: registrytest.Owned{},
		Retention: gc.DefaultRetention(), Alone: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

// However long deletions take, each is within its permit, and that within its removal.
func TestRemovalsAreBounded(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]struct{ permits, removals int }{
		0:                      {3, 3}, // of a hundred each
		300 * time.Millisecond: {16, 8},
		7 * time.Second:        {130, 65},
	} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 250
				if takes > storage.PermitTime {
					n = 130
				}
				r, c := garbage(t, n)
				r.takes = takes
				did := collect(t, c)
				if did.Blobs != n || did.Bytes == 0 {
					t.Errorf("collected %+v, want %d blobs", did, n)
				}
				if r.given < want.permits || len(r.ids) < want.removals {
					t.Errorf("by %d permits in %d removals, want at least %d in %d", r.given, len(r.ids), want.permits, want.removals)
				}
				if did := collect(t, c); did.Blobs != 0 {
					t.Errorf("then collected %+v, want nothing", did)
				}
			})
		})
	}
}

// What could not be deleted may still be, so that its removal lasts on. The others are given
// back at once, and the next collection deletes all.
func TestRemovalFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c := garbage(t, 50)
		r.fails = digest.FromString("garbage 7")
		did, err := c.Collect(t.Context())
		if !errors.Is(err, errInjected) {
			t.Fatalf("got %v, want the error of the deletion", err)
		}
		lasting := 0
		for i := range 50 {
			d := digest.FromString(fmt.Sprint("garbage ", i))
			if removal, err := r.db.Unmark(t.Context(), d); err != nil || removal.ID != "" {
				lasting++
				if d != r.fails || err != nil {
					t.Errorf("%s is being removed (%v)", d, err)
				}
			}
		}
		if lasting != 1 {
			t.Errorf("%d removals last, want that of what failed", lasting)
		}
		r.fails = ""
		time.Sleep(storage.RemovalTime) // of a bubble
		rest := collect(t, c)
		if did.Blobs+rest.Blobs != 50 {
			t.Errorf("collected %d and %d blobs, want 50 in all", did.Blobs, rest.Blobs)
		}
	})
}
