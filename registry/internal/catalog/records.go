package catalog

import (
	"context"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// RecordRows reads the records of one repository at one instant.
type RecordRows interface {
	// TagsOf lists the tags of each manifest, in byte order.
	TagsOf(ctx context.Context) (map[registry.Digest][]string, error)
	// ManifestRecords lists the records of manifests by digest, without their tags.
	ManifestRecords(ctx context.Context) ([]storage.GCRecord, error)
	// BlobRecords lists the records of blobs by digest.
	BlobRecords(ctx context.Context) ([]storage.GCRecord, error)
}

// RecordWriter changes the records of one repository. Missing records are [ErrNoRow].
type RecordWriter interface {
	UnmarkRecord(ctx context.Context, key storage.GCRecordKey) error
	// MarkRecord marks a record since at, or since now if at is past. A marked one keeps its time.
	MarkRecord(ctx context.Context, key storage.GCRecordKey, at time.Time) error
	// DeleteRecord deletes a record; a manifest with its tags and derived data.
	DeleteRecord(ctx context.Context, key storage.GCRecordKey) error
}

// Records lists what a repository holds: manifests, then blobs.
func Records(ctx context.Context, q RecordRows) ([]storage.GCRecord, error) {
	tags, err := q.TagsOf(ctx)
	if err != nil {
		return nil, err
	}
	all, err := q.ManifestRecords(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Tags = tags[all[i].Digest]
	}
	blobs, err := q.BlobRecords(ctx)
	return append(all, blobs...), err
}

// UpdateRecords applies what decide returns for the records of a repository. It runs in a
// transaction that excludes other writers of these records.
func UpdateRecords(
	ctx context.Context,
	tx interface {
		RecordRows
		RecordWriter
	},
	decide func([]storage.GCRecord) (storage.GCChanges, error),
) error {
	held, err := Records(ctx, tx)
	if err != nil {
		return err
	}
	changes, err := decide(held)
	if err != nil {
		return err
	}
	steps := []struct {
		keys   []storage.GCRecordKey
		change func(storage.GCRecordKey) error
	}{
		{changes.Unmark, func(key storage.GCRecordKey) error { return tx.UnmarkRecord(ctx, key) }},
		{changes.Mark, func(key storage.GCRecordKey) error { return tx.MarkRecord(ctx, key, changes.At) }},
		{changes.Delete, func(key storage.GCRecordKey) error { return tx.DeleteRecord(ctx, key) }},
	}
	for _, step := range steps {
		for _, key := range step.keys {
			if err := step.change(key); err != nil && !errors.Is(err, ErrNoRow) { // it is gone already
				return err
			}
		}
	}
	return nil
}

// Unmark unmarks a digest for [storage.MarkStore], unless a removal of it is in progress.
// removal reads the row of the digest; found is false if there is none. remove deletes the row
// unless a removal has begun since, and returns the number of deleted rows. Reading first saves
// a write if the digest is not marked.
func Unmark(
	removal func() (r storage.Removal, found bool, err error), remove func() (int64, error),
) (storage.Removal, error) {
	for {
		r, found, err := removal()
		if err != nil || !found || r.ID != "" {
			return r, err
		}
		if n, err := remove(); n > 0 || err != nil {
			return storage.Removal{}, err
		}
	}
}
