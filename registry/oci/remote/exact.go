package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// exact is a repository that reports content as not found if its descriptor states a wrong size or media
// type, as [oci.Repository] requires. Every caller who may attach something to a release can write a wrong
// descriptor, which must not look like a failing registry.
type exact struct{ *transfer.Repository }

// Fetch opens content.
func (e exact) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	rc, err := e.Repository.Fetch(ctx, target)
	var response *errcode.ErrorResponse
	if err == nil || errors.Is(err, errdef.ErrNotFound) || errors.As(err, &response) {
		return rc, err
	}
	if stored, asked := e.stored(ctx, target); asked == nil && (stored.Size != target.Size || stored.MediaType != target.MediaType) {
		return nil, fmt.Errorf("%s is a %s of %d bytes and no %s of %d: %w",
			target.Digest, stored.MediaType, stored.Size, target.MediaType, target.Size, errdef.ErrNotFound)
	}
	return nil, err
}

// stored returns the descriptor of what the registry has under the digest of target. Registries keep no
// media type for blobs, so it is that of target.
func (e exact) stored(ctx context.Context, target ocispec.Descriptor) (ocispec.Descriptor, error) {
	stored, err := e.Manifests().Resolve(ctx, string(target.Digest))
	if errors.Is(err, errdef.ErrNotFound) {
		stored, err = e.Blobs().Resolve(ctx, string(target.Digest))
		stored.MediaType = target.MediaType
	}
	return stored, err
}
