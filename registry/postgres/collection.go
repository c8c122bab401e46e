package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	names, err := db.queries().RepositoryList(ctx)
	return names, db.interpretError("repositories", err)
}

// Records returns what a repository holds.
func (db *DB) Records(ctx context.Context, repository string) ([]registry.GCRecord, error) {
	var all []registry.GCRecord
	err := db.snapshot(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
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
			Created: m.Created.UTC(), Marked: timeOf(m.Condemned), Tags: tags[m.Digest],
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
				Created: b.Created.UTC(),
				Marked:  timeOf(b.Condemned),
			},
		)
	}
	return all, nil
}

// UpdateRecords locks all names while decide runs, also those of other repositories. Reads and writes
// of names are many small transactions, which wait for it.
func (db *DB) UpdateRecords(
	ctx context.Context,
	repository string,
	decide func([]registry.GCRecord) (registry.GCChanges, error),
) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.CollectionLock(ctx); err != nil {
			return err
		}
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
			if err := condemnRecord(ctx, q, repository, key, s.At); err != nil {
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
			dbsqlc.ManifestCondemnParams{Repository: repository, Digest: string(key.Digest), At: at})
	}
	return q.BlobCondemn(ctx, dbsqlc.BlobCondemnParams{Repository: repository, Digest: string(key.Digest), At: at})
}

func removeRecord(ctx context.Context, q *dbsqlc.Queries, repository string, key registry.GCRecordKey) (err error) {
	if key.Manifest {
		err = deleteManifest(ctx, q, repository, key.Digest)
	} else {
		err = found(q.BlobRemove(ctx, dbsqlc.BlobRemoveParams{Repository: repository, Digest: string(key.Digest)}))
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// WithoutRepository returns the digests that no repository holds.
func (db *DB) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().Unheld(ctx, texts(digests))
	if err != nil {
		return nil, db.interpretError("find unheld bytes", err)
	}
	var unheld []registry.Digest
	for _, d := range rows {
		unheld = append(unheld, registry.Digest(d))
	}
	return unheld, nil
}

// texts converts digests to the values of a column.
func texts(digests []registry.Digest) []string {
	all := make([]string, len(digests))
	for i, d := range digests {
		all[i] = string(d)
	}
	return all
}

// Mark marks the digests as unheld.
func (db *DB) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.interpretError("mark bytes",
		db.queries().CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{At: at, Digests: texts(digests)}))
}

// Unmark unmarks d. It reads first, to save a write if d is not marked.
func (db *DB) Unmark(ctx context.Context, d registry.Digest) (registry.Removal, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	subject := fmt.Sprintf("unmark blob %s", d)
	for {
		row, err := db.queries().CondemnedGet(ctx, string(d))
		if errors.Is(err, pgx.ErrNoRows) {
			return registry.Removal{}, nil
		}
		if err != nil || row.Removal != "" {
			return registry.Removal{
				ID:   row.Removal,
				Left: time.Duration(row.Microseconds) * time.Microsecond,
			}, db.interpretError(subject, err)
		}
		if n, err := db.queries().CondemnedRemove(ctx, string(d)); n > 0 || err != nil {
			return registry.Removal{}, db.interpretError(subject, err)
		}
	}
}

// MarkedBefore reads in pages and holds nothing open between them.
func (db *DB) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		page := dbsqlc.CondemnedPageParams{Before: before, PageSize: pageSize}
		for {
			digests, err := db.duePage(ctx, page)
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

func (db *DB) duePage(ctx context.Context, page dbsqlc.CondemnedPageParams) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.queries().CondemnedPage(ctx, page)
}
