package mem

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AddBlob records a membership. A second one only unmarks.
func (db *DB) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.addBlob(repository, d, size)
	return nil
}

// addBlob records a membership. The caller holds the lock.
func (db *DB) addBlob(repository string, d registry.Digest, size int64) {
	key := member{repository, d}
	if _, ok := db.blobs[key]; !ok {
		db.blobs[key] = size
	}
	db.put(recordKey{key, false})
}

// AddUploaded ends an upload and records the membership.
func (db *DB) AddUploaded(
	ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest, size int64,
) (added bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	s, ok := db.uploads[id]
	if !ok || s.Owner != owner || s.Version != catalog.NewUploadVersion {
		return false, nil
	}
	delete(db.uploads, id)
	db.addBlob(owner.Repository, d, size)
	return true, nil
}

// Blob returns the size that the membership was recorded with, and unmarks.
func (db *DB) Blob(ctx context.Context, repository string, d registry.Digest) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	key := member{repository, d}
	size, ok := db.blobs[key]
	if !ok {
		return 0, registry.Errorf(registry.CodeNotFound, "blob %s in %s: not found", d, repository)
	}
	db.unmark(recordKey{key, false})
	return size, nil
}

// PutManifest records m. Media type, size and pusher stay as first recorded.
func (db *DB) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.putManifest(repository, m)
	for _, tag := range tags {
		db.tags[tagKey{repository, tag}] = m.Digest
	}
	return nil
}

// putManifest records m. The caller holds the lock.
func (db *DB) putManifest(repository string, m storage.Manifest) {
	key := member{repository, m.Digest}
	if have, ok := db.manifests[key]; ok {
		m.MediaType, m.Size, m.Pusher = have.MediaType, have.Size, have.Pusher
	}
	db.manifests[key] = clone(m)
	db.put(recordKey{key, true})
}

// Manifest returns the record of d, and unmarks.
func (db *DB) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	if err := ctx.Err(); err != nil {
		return storage.Manifest{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	key := member{repository, d}
	m, ok := db.manifests[key]
	if !ok {
		return storage.Manifest{}, registry.Errorf(registry.CodeNotFound, "manifest %s in %s: not found", d, repository)
	}
	db.unmark(recordKey{key, true})
	return clone(m), nil
}

// referrerPage is how many referrers are listed at a time.
const referrerPage = 100

// Referrers lists a page of who refers to d.
func (db *DB) Referrers(ctx context.Context, repository string, d registry.Digest,
	artifactType string, after registry.Digest) ([]storage.Manifest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var found []storage.Manifest
	for key, m := range db.manifests {
		if key.repository == repository && d != "" && m.Derived.Subject == d &&
			m.Digest > after && (artifactType == "" || m.Derived.ArtifactType == artifactType) {
			found = append(found, clone(m))
		}
	}
	slices.SortFunc(found, func(a, b storage.Manifest) int { return cmp.Compare(a.Digest, b.Digest) })
	return found[:min(len(found), referrerPage)], nil
}

// CountReferrers counts the referrers of a subject that a principal pushed.
func (db *DB) CountReferrers(ctx context.Context, repository string, d registry.Digest, pusher string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	n := 0
	for key, m := range db.manifests {
		if key.repository == repository && d != "" && m.Derived.Subject == d && m.Pusher == pusher {
			n++
		}
	}
	return n, nil
}

// ListRepositories lists repositories that have manifests.
func (db *DB) ListRepositories(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	names := make(map[string]bool)
	for key := range db.manifests {
		if strings.HasPrefix(key.repository, prefix) && key.repository > after {
			names[key.repository] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), limit)], nil
}

// AllManifests lists the manifests recorded when the sequence was started.
func (db *DB) AllManifests(ctx context.Context) iter.Seq2[storage.RepositoryManifest, error] {
	return func(yield func(storage.RepositoryManifest, error) bool) {
		yieldAll(ctx, db.allManifests(), yield)
	}
}

func (db *DB) allManifests() []storage.RepositoryManifest {
	db.mu.RLock()
	defer db.mu.RUnlock()
	all := make([]storage.RepositoryManifest, 0, len(db.manifests))
	for key, m := range db.manifests {
		all = append(all, storage.RepositoryManifest{Repository: key.repository, Manifest: clone(m)})
	}
	slices.SortFunc(all, func(a, b storage.RepositoryManifest) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Manifest.Digest, b.Manifest.Digest))
	})
	return all
}

// Tag returns the digest that a tag names.
func (db *DB) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	d, ok := db.tags[tagKey{repository, tag}]
	if !ok {
		return "", registry.Errorf(registry.CodeNotFound, "tag %s in %s: not found", tag, repository)
	}
	return d, nil
}

// SetTag sets a tag. Errors: CodeNotFound when the manifest of d is not recorded.
func (db *DB) SetTag(ctx context.Context, repository, tag string, d registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.manifests[member{repository, d}]; !ok {
		return catalog.TagSet(repository, tag, d, 0, nil)
	}
	db.tags[tagKey{repository, tag}] = d
	return nil
}

// ListTags lists tags in byte order.
func (db *DB) ListTags(ctx context.Context, repository, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var tags []string
	for key := range db.tags {
		if key.repository == repository && key.tag > after {
			tags = append(tags, key.tag)
		}
	}
	slices.Sort(tags)
	if limit > 0 && len(tags) > limit {
		tags = tags[:limit]
	}
	return tags, nil
}

// clone shares no memory with m. No annotations are a nil map.
func clone(m storage.Manifest) storage.Manifest {
	m.Derived.Annotations = maps.Clone(m.Derived.Annotations)
	if len(m.Derived.Annotations) == 0 {
		m.Derived.Annotations = nil
	}
	return m
}
