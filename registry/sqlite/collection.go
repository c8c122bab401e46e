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
	_ registry.GCStore   = (*DB)(nil)
	_ registry.MarkStore = (*DB)(nil)
	_ registry.Removals  = (*DB)(nil)
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	names, err := db.read().RepositoryList(ctx)
	return names, db.interpretError("repositories", err)
}

// Records returns what a repository holds.
func (db *DB) Records(ctx context.Context, repository string) ([]registry.GCRecord, error) {
	var all []registry.GCRecord
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) (err error) {
		all, err = holdings(ctx, q, repository)
		return err
	})
	return all, db.interpretError("holdings of "+repository, err)
}

func holdings(ctx context.Context, q *dbsqlc.Queries, repository string) ([]registry.GCRecord, error) {
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
	var all []registry.GCRecord
	for _, m := range manifests {
		all = append(all, registry.GCRecord{
			Digest: registry.Digest(m.Digest), Manifest: true, MediaType: m.MediaType, Size: m.Size,
			Created: fromMicros(m.Created), Marked: since(m.Condemned), Tags: tags[m.Digest],
		})
	}
	blobs, err := q.HoldingBlobs(ctx, repository)
	if err != nil {
		return nil, err
	}
	for _, b := range blobs {
		all = append(
			all,
			registry.GCRecord{
				Digest:  registry.Digest(b.Digest),
				Size:    b.Size,
				Created: fromMicros(b.Created),
				Marked:  since(b.Condemned),
			},
		)
	}
	return all, nil
}

// since returns the time of a mark, or the zero time without a mark.
func since(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return fromMicros(micros)
}

// UpdateRecords holds the write lock of the database while decide runs.
func (db *DB) UpdateRecords(
	ctx context.Context,
	repository string,
	decide func([]registry.GCRecord) (registry.GCChanges, error),
) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		now := db.now()
		held, err := holdings(ctx, q, repository)
		if err != nil {
			return err
		}
		s, err := decide(held)
		if err != nil {
			return err
		}
		for _, key := range s.Unmark {
			if err := rescindRecord(ctx, q, repository, key); err != nil {
				return err
			}
		}
		for _, key := range s.Mark {
			if err := condemnRecord(ctx, q, repository, key, later(s.At, now)); err != nil {
				return err
			}
		}
		for _, key := range s.Delete {
			if err := removeRecord(ctx, q, repository, key); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("settle "+repository, err)
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func rescindRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.GCRecordKey) (err error) {
	if key.Manifest {
		_, err = q.ManifestRescind(ctx, dbsqlc.ManifestRescindParams{Repository: repository, Digest: string(key.Digest)})
	} else {
		_, err = q.BlobRescind(ctx, dbsqlc.BlobRescindParams{Repository: repository, Digest: string(key.Digest)})
	}
	return err
}

func condemnRecord(
	ctx context.Context,
	q *dbsqlc.Queries,
	repository string,
	key registry.GCRecordKey,
	at time.Time,
) error {
	if key.Manifest {
		return q.ManifestCondemn(ctx,
			dbsqlc.ManifestCondemnParams{Repository: repository, Digest: string(key.Digest), At: at.UnixMicro()})
	}
	return q.BlobCondemn(ctx,
		dbsqlc.BlobCondemnParams{Repository: repository, Digest: string(key.Digest), At: at.UnixMicro()})
}

func removeRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.GCRecordKey) (err error) {
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

// WithoutRepository returns the digests that no repository holds.
func (db *DB) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
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
	return unheld, db.interpretError("find unheld bytes", err)
}

// Mark marks the digests as unheld.
func (db *DB) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	now := db.now()
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range digests {
			if err := q.CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{Digest: string(d), At: later(at, now).UnixMicro()}); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("mark bytes", err)
}

// Unmark unmarks d. It reads first, to save a write if d is not marked.
func (db *DB) Unmark(ctx context.Context, d registry.Digest) (registry.Removal, error) {
	subject := fmt.Sprintf("unmark blob %s", d)
	for {
		row, err := db.read().CondemnedGet(ctx, string(d))
		if errors.Is(err, sql.ErrNoRows) {
			return registry.Removal{}, nil
		}
		if err != nil || row.Removal != "" {
			return registry.Removal{ID: row.Removal, Left: fromMicros(row.Until).Sub(db.now())}, db.interpretError(subject, err)
		}
		if n, err := db.write().CondemnedRemove(ctx, string(d)); n > 0 || err != nil {
			return registry.Removal{}, db.interpretError(subject, err)
		}
	}
}

// MarkedBefore reads in pages and holds nothing open between them.
func (db *DB) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		page := dbsqlc.CondemnedPageParams{Before: before.UnixMicro(), PageSize: pageSize}
		for {
			digests, err := db.read().CondemnedPage(ctx, page)
			if err != nil {
				yield("", db.interpretError("marked bytes", err))
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
