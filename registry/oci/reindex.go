package oci

import (
	"context"
	"errors"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Reindex recomputes the fields of every manifest record from the manifest's bytes, and returns
// the number of records that are correct afterwards. It continues after a manifest that it
// cannot read. Errors: all that occurred, joined. CodeDigest and CodeNotFound name the changed
// or missing manifest; its record stays as it is.
func Reindex(ctx context.Context, blobs storage.Blobs, refs storage.RepositoryRecords) (n int, err error) {
	var all []storage.RepositoryManifest // read to the end first: a store may refuse writes during a listing
	for m, err := range refs.AllManifests(ctx) {
		if err != nil {
			return 0, registry.Errorf(registry.CodeOf(err), "list manifests: %w", err)
		}
		all = append(all, m)
	}
	var failures []error
	for _, m := range all {
		if err := ctx.Err(); err != nil {
			return n, errors.Join(append(failures, err)...)
		}
		if err := reindex(ctx, blobs, refs, m); err != nil {
			failures = append(failures, err)
			continue
		}
		n++
	}
	return n, errors.Join(failures...)
}

// reindex recomputes one record.
func reindex(ctx context.Context, blobs storage.Blobs, refs storage.RepositoryRecords, m storage.RepositoryManifest) error {
	repo := repository{Repository: Local(blobs, refs, m.Repository), name: m.Repository}
	record := m.Manifest
	raw, err := repo.read(ctx, "manifest", ocispec.Descriptor{MediaType: record.MediaType, Digest: record.Digest, Size: record.Size})
	if err != nil {
		return err
	}
	if record.Derived, err = artifact.DeriveManifest(record.MediaType, raw); err != nil {
		return repo.about("manifest", record.Digest, err)
	}
	if err := refs.PutManifest(ctx, m.Repository, record); err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: record manifest %s: %w", m.Repository, record.Digest, err)
	}
	return nil
}
