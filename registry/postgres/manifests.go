package postgres

import (
	"context"
	"fmt"
	"iter"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// PutManifest records m and sets tags. Media type, size and pusher stay as first recorded.
func (db *DB) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := (tx{q}).PutManifest(ctx, repository, m); err != nil {
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

// PutManifest records m without tags.
func (q tx) PutManifest(ctx context.Context, repository string, m storage.Manifest) error {
	if err := q.ManifestAdd(ctx, dbsqlc.ManifestAddParams{
		Repository: repository,
		Digest:     string(m.Digest),
		MediaType:  m.MediaType,
		Size:       m.Size,
		Pusher:     m.Pusher,
	}); err != nil {
		return err
	}
	return q.setDerived(ctx, repository, m)
}

// setDerived records what is derived from the bytes of m.
func (q tx) setDerived(ctx context.Context, repository string, m storage.Manifest) error {
	annotations, err := catalog.EncodeAnnotations(m)
	if err != nil {
		return err
	}
	return q.DerivedSet(ctx, dbsqlc.DerivedSetParams{
		Repository: repository, Digest: string(m.Digest),
		ArtifactType: m.Derived.ArtifactType,
		Subject:      string(m.Derived.Subject),
		Annotations:  annotations,
	})
}

// Manifest returns the record of d, and unmarks it.
func (db *DB) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().ManifestGet(ctx, dbsqlc.ManifestGetParams{Repository: repository, Digest: string(d)})
	if err == nil {
		err = catalog.UnmarkRead(row.Condemned != nil, func() (int64, error) {
			return db.queries().ManifestRescind(ctx, dbsqlc.ManifestRescindParams{Repository: repository, Digest: string(d)})
		})
	}
	if err != nil {
		return storage.Manifest{}, db.interpretError(fmt.Sprintf("manifest %s in %s", d, repository), err)
	}
	return catalog.ManifestRow{
		Repository: row.Repository, Digest: row.Digest, MediaType: row.MediaType, Size: row.Size, Pusher: row.Pusher,
		ArtifactType: row.ArtifactType, Subject: row.Subject, Annotations: row.Annotations,
	}.Manifest()
}

// Referrers lists a page of the manifests that refer to d.
func (db *DB) Referrers(
	ctx context.Context,
	repository string,
	d registry.Digest,
	artifactType string,
	after registry.Digest,
) ([]storage.Manifest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	found, err := catalog.Referrers(string(after), func(after string) ([]catalog.ReferrerSize, error) {
		sizes, err := db.queries().ReferrerSizes(ctx, dbsqlc.ReferrerSizesParams{
			Repository: repository, Subject: string(d), ArtifactType: artifactType, After: after, PageSize: pageSize,
		})
		return catalog.Convert(sizes, func(row dbsqlc.ReferrerSizesRow) catalog.ReferrerSize {
			return catalog.ReferrerSize(row)
		}), err
	}, func(after, last string) ([]storage.Manifest, error) {
		rows, err := db.queries().ManifestReferrers(ctx, dbsqlc.ManifestReferrersParams{
			Repository: repository, Subject: string(d), ArtifactType: artifactType, After: after, Last: last,
		})
		if err != nil {
			return nil, err
		}
		return catalog.Decode(rows, func(row dbsqlc.ManifestReferrersRow) (storage.Manifest, error) {
			return catalog.ManifestRow(row).Manifest()
		})
	})
	return found, db.interpretError(fmt.Sprintf("referrers of %s in %s", d, repository), err)
}

// CountReferrers counts the referrers of a subject that a principal pushed.
func (db *DB) CountReferrers(
	ctx context.Context,
	repository string,
	subject registry.Digest,
	pusher string,
) (int, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().
		ReferrerCount(ctx, dbsqlc.ReferrerCountParams{Repository: repository, Subject: string(subject), Pusher: pusher})
	return int(n), db.interpretError(fmt.Sprintf("referrers of %s in %s", subject, repository), err)
}

// AllManifests reads in pages and holds nothing open between them, so that records can
// be written while the sequence runs.
func (db *DB) AllManifests(ctx context.Context) iter.Seq2[storage.RepositoryManifest, error] {
	return catalog.Pages(pageSize, func(last *dbsqlc.ManifestPageRow) ([]dbsqlc.ManifestPageRow, error) {
		page := dbsqlc.ManifestPageParams{PageSize: pageSize}
		if last != nil {
			page.Repository, page.Digest = last.Repository, last.Digest
		}
		rows, err := db.manifestPage(ctx, page)
		return rows, db.interpretError("manifests", err)
	}, func(row dbsqlc.ManifestPageRow) (storage.RepositoryManifest, error) {
		return catalog.ManifestRow(row).RepositoryManifest()
	})
}

func (db *DB) manifestPage(ctx context.Context, page dbsqlc.ManifestPageParams) ([]dbsqlc.ManifestPageRow, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.queries().ManifestPage(ctx, page)
}

// ResetDerived deletes the data that is derived from the bytes of manifests: artifact types,
// subjects and annotations, and so the referrers. Recording every manifest again restores it.
func (db *DB) ResetDerived(ctx context.Context) error {
	return db.interpretError("derived records", db.queries().DerivedClear(ctx))
}
