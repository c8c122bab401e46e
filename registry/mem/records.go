package mem

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// records reads and writes the records of a repository. The caller holds the lock.
type records struct {
	db         *DB
	repository string
}

var (
	_ catalog.RecordRows   = records{}
	_ catalog.RecordWriter = records{}
)

// TagsOf lists the tags of each manifest.
func (r records) TagsOf(context.Context) (map[registry.Digest][]string, error) {
	tags := make(map[registry.Digest][]string)
	for key, d := range r.db.tags {
		if key.repository == r.repository {
			tags[d] = append(tags[d], key.tag)
		}
	}
	for _, names := range tags {
		slices.Sort(names)
	}
	return tags, nil
}

// ManifestRecords lists the records of manifests.
func (r records) ManifestRecords(context.Context) ([]storage.GCRecord, error) {
	all := r.list(true)
	for i, h := range all {
		m := r.db.manifests[member{r.repository, h.Digest}]
		all[i].MediaType, all[i].Size = m.MediaType, m.Size
	}
	return all, nil
}

// BlobRecords lists the records of blobs.
func (r records) BlobRecords(context.Context) ([]storage.GCRecord, error) {
	all := r.list(false)
	for i, h := range all {
		all[i].Size = r.db.blobs[member{r.repository, h.Digest}]
	}
	return all, nil
}

// list lists the records of one kind by digest.
func (r records) list(manifests bool) []storage.GCRecord {
	var all []storage.GCRecord
	for key, a := range r.db.ages {
		if key.repository == r.repository && key.manifest == manifests {
			all = append(all, storage.GCRecord{Digest: key.digest, Manifest: manifests, Created: a.created, Marked: a.marked})
		}
	}
	slices.SortFunc(all, func(a, b storage.GCRecord) int { return cmp.Compare(a.Digest, b.Digest) })
	return all
}

func (r records) key(key storage.GCRecordKey) recordKey {
	return recordKey{member{r.repository, key.Digest}, key.Manifest}
}

// UnmarkRecord unmarks a record.
func (r records) UnmarkRecord(_ context.Context, key storage.GCRecordKey) error {
	if _, ok := r.db.ages[r.key(key)]; !ok {
		return catalog.ErrNoRow
	}
	r.db.unmark(r.key(key))
	return nil
}

// MarkRecord marks a record.
func (r records) MarkRecord(_ context.Context, key storage.GCRecordKey, at time.Time) error {
	if a, ok := r.db.ages[r.key(key)]; ok && a.marked.IsZero() {
		r.db.ages[r.key(key)] = age{a.created, r.db.notBefore(at)}
	}
	return nil
}

// DeleteRecord deletes a record.
func (r records) DeleteRecord(_ context.Context, key storage.GCRecordKey) error {
	if key.Manifest {
		r.db.deleteManifest(r.key(key).member)
	} else {
		r.db.deleteBlob(r.key(key).member)
	}
	return nil
}

// Records returns the records of a repository.
func (db *DB) Records(ctx context.Context, repository string) ([]storage.GCRecord, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return catalog.Records(ctx, records{db, repository})
}

// UpdateRecords holds the lock of everything while decide thinks.
func (db *DB) UpdateRecords(ctx context.Context, repository string, decide func([]storage.GCRecord) (storage.GCChanges, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return catalog.UpdateRecords(ctx, records{db, repository}, decide)
}
