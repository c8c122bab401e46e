package telemetry

import (
	"context"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Refs times the operations of inner.
func (t *Telemetry) Refs(inner storage.RepositoryRecords) storage.RepositoryRecords {
	return timedRefs{inner, t}
}

// Catalog times the operations of inner.
func (t *Telemetry) Catalog(inner storage.Catalog) storage.Catalog { return timedCatalog{inner, t} }

// Latest times the operations of inner.
func (t *Telemetry) Latest(inner storage.Latest) storage.Latest { return timedLatest{inner, t} }

// Records times the operations of inner.
func (t *Telemetry) Records(inner history.HistoryIndex) history.HistoryIndex {
	return timedRecords{inner, t}
}

type timedRecords struct {
	inner history.HistoryIndex
	t     *Telemetry
}

func (r timedRecords) Recorded(ctx context.Context, model string, bundles []registry.Digest) (map[registry.Digest]history.Record, error) {
	return timed(r.t, "recorded", func() (map[registry.Digest]history.Record, error) { return r.inner.Recorded(ctx, model, bundles) })
}

func (r timedRecords) Reindex(ctx context.Context, model string) error {
	return timedOnly(r.t, "reindex_recorded", func() error { return r.inner.Reindex(ctx, model) })
}

type timedLatest struct {
	inner storage.Latest
	t     *Telemetry
}

func (l timedLatest) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	return timed(l.t, "last_event", func() (registry.Digest, error) { return l.inner.LastEvent(ctx, environment, model) })
}

func (l timedLatest) AdverseChanges(ctx context.Context, model string) (int64, error) {
	return timed(l.t, "adverse_changes", func() (int64, error) { return l.inner.AdverseChanges(ctx, model) })
}

// timed measures an operation.
func timed[T any](t *Telemetry, operation string, do func() (T, error)) (T, error) {
	began := time.Now()
	v, err := do()
	t.database.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	return v, err
}

// timedOnly measures an operation that returns only an error.
func timedOnly(t *Telemetry, operation string, do func() error) error {
	_, err := timed(t, operation, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// timedRefs does not measure AllManifests, because its duration depends on the reader.
type timedRefs struct {
	storage.RepositoryRecords
	t *Telemetry
}

func (r timedRefs) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	return timedOnly(r.t, "add_blob", func() error { return r.RepositoryRecords.AddBlob(ctx, repository, d, size) })
}

func (r timedRefs) AddUploaded(ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest, size int64) (bool, error) {
	return timed(r.t, "add_blob", func() (bool, error) { return r.RepositoryRecords.AddUploaded(ctx, owner, id, d, size) })
}

func (r timedRefs) Blob(ctx context.Context, repository string, d registry.Digest) (int64, error) {
	return timed(r.t, "blob", func() (int64, error) { return r.RepositoryRecords.Blob(ctx, repository, d) })
}

func (r timedRefs) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	return timedOnly(r.t, "put_manifest", func() error { return r.RepositoryRecords.PutManifest(ctx, repository, m, tags...) })
}

func (r timedRefs) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	return timed(r.t, "manifest", func() (storage.Manifest, error) { return r.RepositoryRecords.Manifest(ctx, repository, d) })
}

func (r timedRefs) Referrers(ctx context.Context, repository string, d registry.Digest,
	artifactType string, after registry.Digest) ([]storage.Manifest, error) {
	return timed(r.t, "referrers", func() ([]storage.Manifest, error) {
		return r.RepositoryRecords.Referrers(ctx, repository, d, artifactType, after)
	})
}

func (r timedRefs) ListRepositories(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	return timed(r.t, "list_repositories", func() ([]string, error) {
		return r.RepositoryRecords.ListRepositories(ctx, prefix, after, limit)
	})
}

func (r timedRefs) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	return timed(r.t, "tag", func() (registry.Digest, error) { return r.RepositoryRecords.Tag(ctx, repository, tag) })
}

func (r timedRefs) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	return timedOnly(r.t, "set_tag", func() error { return r.RepositoryRecords.SetTag(ctx, repository, tag, d) })
}

func (r timedRefs) ListTags(ctx context.Context, repository, after string, limit int) ([]string, error) {
	return timed(r.t, "list_tags", func() ([]string, error) { return r.RepositoryRecords.ListTags(ctx, repository, after, limit) })
}

type timedCatalog struct {
	storage.Catalog
	t *Telemetry
}

func (c timedCatalog) Head(ctx context.Context, environment, model string) (history.Head, error) {
	return timed(c.t, "head", func() (history.Head, error) { return c.Catalog.Head(ctx, environment, model) })
}

func (c timedCatalog) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	return timed(c.t, "heads", func() ([]history.Head, error) { return c.Catalog.Heads(ctx, environment, model) })
}

func (c timedCatalog) Apply(ctx context.Context, change storage.Change) (history.Event, error) {
	return timed(c.t, "apply", func() (history.Event, error) { return c.Catalog.Apply(ctx, change) })
}

// History is measured until the first event, because the rest depends on the reader.
func (c timedCatalog) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		began, first := time.Now(), true
		for e, err := range c.Catalog.History(ctx, q) {
			if first {
				c.t.database.WithLabelValues("history").Observe(time.Since(began).Seconds())
				first = false
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
