package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// PutManifest records m and sets tags. Media type, size and pusher stay as first recorded.
func (db *DB) PutManifest(ctx context.Context, repository string, m registry.Manifest, tags ...string) error {
	err := db.together(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := putManifest(ctx, q, repository, m, db.now()); err != nil {
			return err
		}
		for _, tag := range tags {
			move := dbsqlc.TagSetRecordedParams{Repository: repository, Tag: tag, Digest: string(m.Digest)}
			if _, err := q.TagSetRecorded(ctx, move); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError(fmt.Sprintf("manifest %s in %s", m.Digest, repository), err)
}

// putManifest records m without tags.
func putManifest(ctx context.Context, q *dbsqlc.Queries, repository string, m registry.Manifest, now time.Time) error {
	annotations, err := json.Marshal(m.Derived.Annotations)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "annotations of manifest %s: %w", m.Digest, err)
	}
	if err := q.ManifestAdd(ctx, dbsqlc.ManifestAddParams{
		Repository: repository,
		Digest:     string(m.Digest),
		MediaType:  m.MediaType,
		Size:       m.Size,
		Pusher:     m.Pusher,
		Created:    now.UnixMicro(),
	}); err != nil {
		return err
	}
	return q.DerivedSet(ctx, dbsqlc.DerivedSetParams{
		Repository: repository, Digest: string(m.Digest),
		ArtifactType: m.Derived.ArtifactType,
		Subject:      string(m.Derived.Subject),
		Annotations:  string(annotations),
	})
}

// Manifest returns the record of d, and unmarks it.
func (db *DB) Manifest(ctx context.Context, repository string, d registry.Digest) (registry.Manifest, error) {
	key := dbsqlc.ManifestGetParams{Repository: repository, Digest: string(d)}
	known, err := recall(ctx, db.steady, key, func() (recorded, error) { return db.recorded(ctx, key) })
	if err == nil && known.condemned {
		// A marked record can be deleted until it is unmarked, so only this update is reliable.
		err = found(db.write().ManifestRescind(ctx, dbsqlc.ManifestRescindParams(key)))
	}
	if err != nil {
		return registry.Manifest{}, db.interpretError(fmt.Sprintf("manifest %s in %s", d, repository), err)
	}
	known.Derived.Annotations = maps.Clone(known.Derived.Annotations) // the caller gets its own copy
	return known.Manifest, nil
}

// recorded is the record of a manifest, and whether it is marked.
type recorded struct {
	registry.Manifest
	condemned bool
	bytes     int // size of its annotations
}

func (db *DB) recorded(ctx context.Context, key dbsqlc.ManifestGetParams) (recorded, error) {
	row, err := db.read().ManifestGet(ctx, key)
	if err != nil {
		return recorded{}, err
	}
	m, err := manifest(dbsqlc.ManifestPageRow{
		Repository: row.Repository, Digest: row.Digest, MediaType: row.MediaType, Size: row.Size, Pusher: row.Pusher,
		ArtifactType: row.ArtifactType, Subject: row.Subject, Annotations: row.Annotations,
	})
	return recorded{m, row.Condemned != 0, len(row.Annotations)}, err
}

// Referrers lists a page of the manifests that refer to d.
func (db *DB) Referrers(
	ctx context.Context,
	repository string,
	d registry.Digest,
	artifactType string,
	after registry.Digest,
) ([]registry.Manifest, error) {
	found, err := db.referrers(ctx, dbsqlc.ReferrerSizesParams{
		Repository: repository, Subject: string(d), ArtifactType: artifactType, After: string(after), PageSize: pageSize,
	})
	if err != nil {
		return nil, db.interpretError(fmt.Sprintf("referrers of %s in %s", d, repository), err)
	}
	return found, nil
}

// referrers reads the sizes of the next annotations before the annotations. Manifests that are
// deleted in between do not end the list.
func (db *DB) referrers(ctx context.Context, page dbsqlc.ReferrerSizesParams) ([]registry.Manifest, error) {
	for {
		sizes, err := db.read().ReferrerSizes(ctx, page)
		if err != nil || len(sizes) == 0 {
			return nil, err
		}
		last, bytes := sizes[0].Digest, sizes[0].Bytes
		for _, next := range sizes[1:] {
			if bytes += next.Bytes; bytes > registry.ReferrerPage {
				break
			}
			last = next.Digest
		}
		rows, err := db.read().ManifestReferrers(ctx, dbsqlc.ManifestReferrersParams{
			Repository: page.Repository, Subject: page.Subject, ArtifactType: page.ArtifactType, After: page.After, Last: last,
		})
		if err != nil || len(rows) > 0 {
			return manifests(rows, err)
		}
		page.After = last
	}
}

// manifests converts rows to records.
func manifests(rows []dbsqlc.ManifestReferrersRow, err error) ([]registry.Manifest, error) {
	if err != nil {
		return nil, err
	}
	found := make([]registry.Manifest, len(rows))
	for i, row := range rows {
		if found[i], err = manifest(dbsqlc.ManifestPageRow(row)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// CountReferrers counts the referrers of a subject that a principal pushed.
func (db *DB) CountReferrers(
	ctx context.Context,
	repository string,
	subject registry.Digest,
	pusher string,
) (int, error) {
	n, err := db.read().
		ReferrerCount(ctx, dbsqlc.ReferrerCountParams{Repository: repository, Subject: string(subject), Pusher: pusher})
	return int(n), db.interpretError(fmt.Sprintf("referrers of %s in %s", subject, repository), err)
}

// AllManifests reads in pages and holds nothing open between them, so that records can
// be written while the sequence runs.
func (db *DB) AllManifests(ctx context.Context) iter.Seq2[registry.RepositoryManifest, error] {
	return func(yield func(registry.RepositoryManifest, error) bool) {
		page := dbsqlc.ManifestPageParams{PageSize: pageSize}
		for {
			rows, err := db.read().ManifestPage(ctx, page)
			if err != nil {
				yield(registry.RepositoryManifest{}, db.interpretError("manifests", err))
				return
			}
			for _, row := range rows {
				m, err := manifest(row)
				if !yield(registry.RepositoryManifest{Repository: row.Repository, Manifest: m}, err) || err != nil {
					return
				}
			}
			if len(rows) < pageSize {
				return
			}
			last := rows[len(rows)-1]
			page.Repository, page.Digest = last.Repository, last.Digest
		}
	}
}

// manifest converts a row to a record. The derived columns may be absent.
func manifest(row dbsqlc.ManifestPageRow) (registry.Manifest, error) {
	m := registry.Manifest{
		Digest: registry.Digest(row.Digest), MediaType: row.MediaType, Size: row.Size, Pusher: row.Pusher,
		Derived: registry.Derived{ArtifactType: row.ArtifactType, Subject: registry.Digest(row.Subject)},
	}
	if row.Annotations == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(row.Annotations), &m.Derived.Annotations); err != nil {
		return registry.Manifest{}, registry.Errorf(registry.CodeInternal,
			"annotations of manifest %s in %s are damaged: run mlpromote reindex to rebuild them: %w",
			row.Digest, row.Repository, err)
	}
	if len(m.Derived.Annotations) == 0 {
		m.Derived.Annotations = nil
	}
	return m, nil
}
