package sqlite

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// records reads and writes the records of a repository in a transaction.
type records struct {
	q          *dbsqlc.Queries
	repository string
	now        time.Time // by the clock of the catalog
}

var (
	_ catalog.RecordRows   = records{}
	_ catalog.RecordWriter = records{}
)

// TagsOf lists the tags of each manifest.
func (r records) TagsOf(ctx context.Context) (map[registry.Digest][]string, error) {
	rows, err := r.q.HoldingTags(ctx, r.repository)
	tags := make(map[registry.Digest][]string)
	for _, t := range rows {
		tags[registry.Digest(t.Digest)] = append(tags[registry.Digest(t.Digest)], t.Tag)
	}
	return tags, err
}

// ManifestRecords lists the records of manifests.
func (r records) ManifestRecords(ctx context.Context) ([]storage.GCRecord, error) {
	rows, err := r.q.HoldingManifests(ctx, r.repository)
	return catalog.Convert(rows, func(m dbsqlc.HoldingManifestsRow) storage.GCRecord {
		return storage.GCRecord{
			Digest: registry.Digest(m.Digest), Manifest: true, MediaType: m.MediaType, Size: m.Size,
			Created: fromMicros(m.Created), Marked: orZero(m.Condemned),
		}
	}), err
}

// BlobRecords lists the records of blobs.
func (r records) BlobRecords(ctx context.Context) ([]storage.GCRecord, error) {
	rows, err := r.q.HoldingBlobs(ctx, r.repository)
	return catalog.Convert(rows, func(b dbsqlc.HoldingBlobsRow) storage.GCRecord {
		return storage.GCRecord{
			Digest: registry.Digest(b.Digest), Size: b.Size, Created: fromMicros(b.Created), Marked: orZero(b.Condemned),
		}
	}), err
}

// UnmarkRecord unmarks a record.
func (r records) UnmarkRecord(ctx context.Context, key storage.GCRecordKey) error {
	if key.Manifest {
		return catalog.Found(r.q.ManifestRescind(ctx,
			dbsqlc.ManifestRescindParams{Repository: r.repository, Digest: string(key.Digest)}))
	}
	return catalog.Found(r.q.BlobRescind(ctx,
		dbsqlc.BlobRescindParams{Repository: r.repository, Digest: string(key.Digest)}))
}

// MarkRecord marks a record.
func (r records) MarkRecord(ctx context.Context, key storage.GCRecordKey, at time.Time) error {
	micros := laterTime(at, r.now).UnixMicro()
	if key.Manifest {
		return r.q.ManifestCondemn(ctx,
			dbsqlc.ManifestCondemnParams{Repository: r.repository, Digest: string(key.Digest), At: micros})
	}
	return r.q.BlobCondemn(ctx,
		dbsqlc.BlobCondemnParams{Repository: r.repository, Digest: string(key.Digest), At: micros})
}

// DeleteRecord deletes a record.
func (r records) DeleteRecord(ctx context.Context, key storage.GCRecordKey) error {
	if key.Manifest {
		return deleteManifest(ctx, r.q, r.repository, key.Digest)
	}
	return catalog.Found(r.q.BlobRemove(ctx,
		dbsqlc.BlobRemoveParams{Repository: r.repository, Digest: string(key.Digest)}))
}

// Records returns what a repository holds.
func (db *DB) Records(ctx context.Context, repository string) ([]storage.GCRecord, error) {
	var all []storage.GCRecord
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) (err error) {
		all, err = catalog.Records(ctx, records{q, repository, db.now()})
		return err
	})
	return all, db.interpretError("holdings of "+repository, err)
}

// UpdateRecords holds the write lock of the database while decide runs.
func (db *DB) UpdateRecords(
	ctx context.Context,
	repository string,
	decide func([]storage.GCRecord) (storage.GCChanges, error),
) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		return catalog.UpdateRecords(ctx, records{q, repository, db.now()}, decide)
	})
	return db.interpretError("settle "+repository, err)
}
