package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

var (
	_ registry.Stock     = (*DB)(nil)
	_ registry.Condemned = (*DB)(nil)
	_ registry.Leases    = (*DB)(nil)
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	names, err := db.read().RepositoryList(ctx)
	return names, db.interpretError("repositories", err)
}

// Holdings gives what a repository holds.
func (db *DB) Holdings(ctx context.Context, repository string) ([]registry.Holding, error) {
	var all []registry.Holding
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) (err error) {
		all, err = holdings(ctx, q, repository)
		return err
	})
	return all, db.interpretError("holdings of "+repository, err)
}

func holdings(ctx context.Context, q *dbsqlc.Queries, repository string) ([]registry.Holding, error) {
	named, err := q.HoldingTags(ctx, repository)
	if err != nil {
		return nil, err
	}
	tags := make(map[string][]string)
	for _, t := range named {
		tags[t.Digest] = append(tags[t.Digest], t.Tag)
	}
	manifests, err := q.HoldingManifests(ctx, repository)
	if err != nil {
		return nil, err
	}
	var all []registry.Holding
	for _, m := range manifests {
		all = append(all, registry.Holding{
			Digest: registry.Digest(m.Digest), Manifest: true, MediaType: m.MediaType, Size: m.Size,
			Created: fromMicros(m.Created), Condemned: since(m.Condemned), Tags: tags[m.Digest],
		})
	}
	blobs, err := q.HoldingBlobs(ctx, repository)
	if err != nil {
		return nil, err
	}
	for _, b := range blobs {
		all = append(all, registry.Holding{Digest: registry.Digest(b.Digest), Size: b.Size, Created: fromMicros(b.Created), Condemned: since(b.Condemned)})
	}
	return all, nil
}

// since is the time of a condemnation; that of none is zero.
func since(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return fromMicros(micros)
}

// Settle holds the write lock of the database while decide thinks.
func (db *DB) Settle(ctx context.Context, repository string, decide func([]registry.Holding) (registry.Settlement, error)) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		held, err := holdings(ctx, q, repository)
		if err != nil {
			return err
		}
		s, err := decide(held)
		if err != nil {
			return err
		}
		for _, key := range s.Rescind {
			if err := rescindRecord(ctx, q, repository, key); err != nil {
				return err
			}
		}
		for _, key := range s.Condemn {
			if err := condemnRecord(ctx, q, repository, key, s.At); err != nil {
				return err
			}
		}
		for _, key := range s.Remove {
			if err := removeRecord(ctx, q, repository, key); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("settle "+repository, err)
}

func rescindRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.HoldingKey) (err error) {
	if key.Manifest {
		_, err = q.ManifestRescind(ctx, dbsqlc.ManifestRescindParams{Repository: repository, Digest: string(key.Digest)})
	} else {
		_, err = q.BlobRescind(ctx, dbsqlc.BlobRescindParams{Repository: repository, Digest: string(key.Digest)})
	}
	return err
}

func condemnRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.HoldingKey, at time.Time) error {
	if key.Manifest {
		return q.ManifestCondemn(ctx, dbsqlc.ManifestCondemnParams{Repository: repository, Digest: string(key.Digest), At: at.UnixMicro()})
	}
	return q.BlobCondemn(ctx, dbsqlc.BlobCondemnParams{Repository: repository, Digest: string(key.Digest), At: at.UnixMicro()})
}

func removeRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.HoldingKey) (err error) {
	if key.Manifest {
		err = deleteManifest(ctx, q, repository, key.Digest)
	} else {
		err = found(q.BlobRemove(ctx, dbsqlc.BlobRemoveParams{Repository: repository, Digest: string(key.Digest)}))
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// Unheld gives the digests that no repository holds.
func (db *DB) Unheld(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	var unheld []registry.Digest
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range digests {
			held, err := q.Held(ctx, string(d))
			if err != nil {
				return err
			}
			if !held {
				unheld = append(unheld, d)
			}
		}
		return nil
	})
	return unheld, db.interpretError("bytes that nobody holds", err)
}

// Condemn notes that nobody holds the digests.
func (db *DB) Condemn(ctx context.Context, at time.Time, digests []registry.Digest) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range digests {
			if err := q.CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{Digest: string(d), At: at.UnixMicro()}); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("condemn bytes", err)
}

// Rescind forgets that d is condemned. The read spares those a write that never were; a
// reader does not see what an Execute is about to do, so what is condemned waits for it.
func (db *DB) Rescind(ctx context.Context, d registry.Digest) error {
	_, err := db.read().CondemnedGet(ctx, string(d))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = db.write().CondemnedRemove(ctx, string(d))
	}
	return db.interpretError(fmt.Sprintf("rescind blob %s", d), err)
}

// Due reads in pages and holds nothing open between them.
func (db *DB) Due(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		page := dbsqlc.CondemnedPageParams{Before: before.UnixMicro(), PageSize: pageSize}
		for {
			digests, err := db.read().CondemnedPage(ctx, page)
			if err != nil {
				yield("", db.interpretError("condemned bytes", err))
				return
			}
			for _, d := range digests {
				if !yield(registry.Digest(d), nil) {
					return
				}
			}
			if len(digests) < pageSize {
				return
			}
			page.After = digests[len(digests)-1]
		}
	}
}

// Execute holds the write lock of the database while remove is at work.
func (db *DB) Execute(ctx context.Context, d registry.Digest, before time.Time, remove func(context.Context) error) (done bool, err error) {
	err = db.transaction(ctx, func(q *dbsqlc.Queries) error {
		at, err := q.CondemnedGet(ctx, string(d))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		held, err := q.Held(ctx, string(d))
		if err != nil || !held && at > before.UnixMicro() {
			return err
		}
		if !held {
			if err := remove(ctx); err != nil {
				return err
			}
			done = true
		}
		return q.CondemnedRemove(ctx, string(d))
	})
	if err != nil {
		return false, db.interpretError(fmt.Sprintf("remove blob %s", d), err)
	}
	return done, nil
}
