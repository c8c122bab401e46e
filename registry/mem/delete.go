package mem

import (
	"context"
	"maps"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Deleter = (*DB)(nil)

// DeleteManifest removes a record and its tags.
func (db *DB) DeleteManifest(ctx context.Context, repository string, d registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	key := member{repository, d}
	if _, ok := db.manifests[key]; !ok {
		return registry.Errorf(registry.CodeNotFound, "manifest %s in %s: not found", d, repository)
	}
	db.deleteManifest(key)
	return nil
}

func (db *DB) deleteManifest(key member) {
	delete(db.manifests, key)
	delete(db.ages, recordKey{key, true})
	maps.DeleteFunc(db.tags, func(k tagKey, named registry.Digest) bool {
		return k.repository == key.repository && named == key.digest
	})
}

// DeleteTag removes a tag.
func (db *DB) DeleteTag(ctx context.Context, repository, tag string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	key := tagKey{repository, tag}
	if _, ok := db.tags[key]; !ok {
		return registry.Errorf(registry.CodeNotFound, "tag %s in %s: not found", tag, repository)
	}
	delete(db.tags, key)
	return nil
}

// RemoveBlob removes a membership.
func (db *DB) RemoveBlob(ctx context.Context, repository string, d registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	key := member{repository, d}
	if _, ok := db.blobs[key]; !ok {
		return registry.Errorf(registry.CodeNotFound, "blob %s in %s: not found", d, repository)
	}
	db.deleteBlob(key)
	return nil
}

func (db *DB) deleteBlob(key member) {
	delete(db.blobs, key)
	delete(db.ages, recordKey{key, false})
}
