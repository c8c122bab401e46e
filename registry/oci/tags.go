package oci

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Tag returns the digest to which a tag of a repository points. Errors: CodeNotFound.
func (s *Store) Tag(ctx context.Context, name, tag string) (registry.Digest, error) {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return "", err
	}
	desc, err := repo.resolve(ctx, "tag", tag)
	return desc.Digest, err
}

// SetTag sets a tag to a manifest of the repository. Errors: CodeNotFound without the manifest.
func (s *Store) SetTag(ctx context.Context, name, tag string, d registry.Digest) error {
	repo, err := s.repository(ctx, name)
	if err != nil {
		return err
	}
	desc, err := repo.resolve(ctx, "manifest", string(d))
	if err != nil {
		return err
	}
	if err := repo.Repository.Tag(ctx, desc, tag); err != nil {
		return repo.failed("set", "tag", tag, err)
	}
	return nil
}
