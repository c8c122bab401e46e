package service_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// faultyStock is names of which a call may fail.
type faultyStock struct {
	storage.GCStore
	*faults
}

func (s faultyStock) Records(ctx context.Context, repository string) ([]storage.GCRecord, error) {
	return read(s.faults, func() ([]storage.GCRecord, error) { return s.GCStore.Records(ctx, repository) })
}

func (s faultyStock) UpdateRecords(ctx context.Context, repository string, decide func([]storage.GCRecord) (storage.GCChanges, error)) error {
	return callErr(s.faults, func() error { return s.GCStore.UpdateRecords(ctx, repository, decide) })
}

// faultyGarbage is condemnations and removals of which a call may fail.
type faultyGarbage struct {
	gc.Garbage
	*faults
}

func (c faultyGarbage) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	return read(c.faults, func() ([]registry.Digest, error) { return c.Garbage.WithoutRepository(ctx, digests) })
}

func (c faultyGarbage) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	return callErr(c.faults, func() error { return c.Garbage.Mark(ctx, at, digests) })
}

func (c faultyGarbage) BeginRemoval(ctx context.Context, r storage.RemovalRequest) ([]registry.Digest, error) {
	return call(c.faults, func() ([]registry.Digest, error) { return c.Garbage.BeginRemoval(ctx, r) })
}

func (c faultyGarbage) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error) {
	return read(c.faults, func() (bool, error) { return c.Garbage.ConfirmRemoval(ctx, id, least) })
}

func (c faultyGarbage) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error {
	return callErr(c.faults, func() error { return c.Garbage.EndRemoval(ctx, id, removed, kept) })
}

// faultyRemover is permits of which a call may fail.
type faultyRemover struct {
	storage.Remover
	*faults
}

func (r faultyRemover) Await(ctx context.Context) error {
	return callErr(r.faults, func() error { return r.Remover.Await(ctx) })
}

func (r faultyRemover) Permit(ctx context.Context) (storage.Permit, error) {
	permit, err := r.Remover.Permit(ctx)
	if failed := callErr(r.faults, func() error { return err }); failed != nil {
		return nil, errors.Join(failed, permit.Close())
	}
	return faultyPermit{permit, r.faults}, nil
}

type faultyPermit struct {
	storage.Permit
	*faults
}

func (p faultyPermit) Delete(ctx context.Context, d registry.Digest) error {
	return callErr(p.faults, func() error { return p.Permit.Delete(ctx, d) })
}

// Wherever a collection is broken off, before a step or after it, nothing that is needed is
// gone, and the next collection finishes it.
func TestCollectSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.Promoted(t, registrytest.Build{Version: "0.9.0", Engines: small()})
			f := new(faults)
			faulty := func(c *gc.Config) {
				c.Alone = true
				c.Store, c.Garbage, c.Remover = faultyStock{c.Store, f}, faultyGarbage{c.Garbage, f}, faultyRemover{c.Remover, f}
			}
			for at := 1; ; at++ {
				w.Build(t, registrytest.Build{Salt: fmt.Sprint("garbage ", at), Engines: small()})
				r := w.Build(t, registrytest.Build{Salt: fmt.Sprint("kept ", at), Engines: small()})
				f.reset(at, late)
				_, err := w.collector(t, 2*days, faulty).Collect(t.Context())
				happened := f.calls >= f.at
				f.reset(0, false)
				if happened != errors.Is(err, errInjected) || !happened && err != nil {
					t.Fatalf("call %d failed: %v; the collection's error is %v", at, happened, err)
				}
				if err := w.config.Content.Rehash(t.Context(), "staging/"+registrytest.Model, r); err != nil {
					t.Fatalf("call %d failed: %v", at, err)
				}
				w.whole(t)
				collect(t, w.collector(t, 2*days, alone))
				if did := collect(t, w.collector(t, 2*days, alone)); did.Manifests+did.Members+did.Blobs+did.Marked != 0 {
					t.Fatalf("call %d failed: the collection after the next one finds %+v", at, did)
				}
				if left := w.garbage(t); left > 0 {
					t.Fatalf("call %d failed: %d blobs are left that no repository holds", at, left)
				}
				if !happened {
					if at < 20 {
						t.Errorf("only %d calls were made to fail", at-1)
					}
					return
				}
			}
		})
	}
}

// small is one engine.
func small() []artifact.Engine { return []artifact.Engine{registrytest.MakeEngine("v3", "int8")} }

// garbage counts the blobs that no repository holds.
func (w *world) garbage(t *testing.T) int {
	t.Helper()
	var all []registry.Digest
	for d, err := range w.blobs.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	unheld, err := w.db.WithoutRepository(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return len(unheld)
}
