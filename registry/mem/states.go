package mem

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CreateUpload records the state of an upload.
func (db *DB) CreateUpload(ctx context.Context, s storage.UploadState) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, taken := db.uploads[s.ID]; taken {
		return registry.Errorf(registry.CodeConflict, "upload %s: is there already; begin another", s.ID)
	}
	s.Version, s.Touched = 1, micros(db.now())
	db.uploads[s.ID] = kept(s)
	return nil
}

// kept is a state as it is stored: nobody else has its bytes.
func kept(s storage.UploadState) storage.UploadState {
	s.Hash = slices.Clone(s.Hash)
	return s
}

// Upload returns the state of an upload.
func (db *DB) Upload(ctx context.Context, owner storage.UploadOwner, id string) (storage.UploadState, error) {
	if err := ctx.Err(); err != nil {
		return storage.UploadState{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	s, ok := db.uploads[id]
	if !ok || s.Owner != owner {
		return storage.UploadState{}, noUpload(id)
	}
	return kept(s), nil
}

// SwapUpload replaces the state of an upload.
func (db *DB) SwapUpload(ctx context.Context, s storage.UploadState) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.changeUpload(s.ID, s.Version, func(have storage.UploadState) {
		s.Owner, s.Touched = have.Owner, micros(db.now())
		s.Version++
		db.uploads[s.ID] = kept(s)
	})
}

// EndUpload forgets an upload.
func (db *DB) EndUpload(ctx context.Context, id string, version int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.changeUpload(id, version, func(storage.UploadState) { delete(db.uploads, id) })
}

// changeUpload changes a version of an upload. The caller holds the lock.
func (db *DB) changeUpload(id string, version int64, change func(storage.UploadState)) error {
	s, ok := db.uploads[id]
	return catalog.ChangeUpload(id, func() (int64, error) {
		if !ok || s.Version != version {
			return 0, nil
		}
		change(s)
		return 1, nil
	}, func() (int64, error) {
		if !ok {
			return 0, noUpload(id)
		}
		return s.Version, nil
	})
}

func noUpload(id string) error {
	return registry.Errorf(registry.CodeNotFound, "upload %s: not found; begin another", id)
}

// CountUploads counts uploads that are under way.
func (db *DB) CountUploads(ctx context.Context, principal string, within time.Duration) (n int, err error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	since := micros(db.now()).Add(-within)
	for _, s := range db.uploads {
		if s.Owner.Principal == principal && !s.Touched.Before(since) {
			n++
		}
	}
	return n, ctx.Err()
}

// StaleUploads lists the uploads that were stale when the sequence was started.
func (db *DB) StaleUploads(ctx context.Context, idle time.Duration) iter.Seq2[storage.UploadState, error] {
	return func(yield func(storage.UploadState, error) bool) {
		db.mu.RLock()
		before := micros(db.now()).Add(-idle)
		stale := slices.Collect(maps.Values(db.uploads))
		db.mu.RUnlock()
		stale = slices.DeleteFunc(stale, func(s storage.UploadState) bool { return idle != 0 && !s.Touched.Before(before) })
		slices.SortFunc(stale, func(a, b storage.UploadState) int {
			return cmp.Or(a.Touched.Compare(b.Touched), cmp.Compare(a.ID, b.ID))
		})
		yieldAll(ctx, stale, yield)
	}
}
