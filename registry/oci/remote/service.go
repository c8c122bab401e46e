package remote

import (
	"context"
	"errors"
	"io"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// KeptError is a refusal to delete that does not depend on the caller's permissions: a release or a policy
// still relies on the content.
type KeptError struct{ Err error }

// Error returns the reason.
func (k KeptError) Error() string { return k.Err.Error() }

// Unwrap returns the reason.
func (k KeptError) Unwrap() error { return k.Err }

// Service opens a repository of an mlpromote service, by plainHTTP or TLS. Refusals have the
// same codes as over the service's REST API.
func Service(host, repository string, plainHTTP bool, transport http.RoundTripper) (oci.Repository, error) {
	repo, err := orasremote.NewRepository(host + "/" + repository)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s/%s: %w", host, repository, err)
	}
	repo.Client = &http.Client{Transport: transfer.Transport(transport)}
	repo.PlainHTTP = plainHTTP
	return serviceRepository{exact{transfer.New(repo, transfer.Options{})}}, nil
}

// serviceRepository translates the errors of a service's OCI endpoint into those of its REST API.
type serviceRepository struct{ inner exact }

var (
	_ oci.Repository = serviceRepository{}
	_ oci.Mounter    = serviceRepository{}
	_ oci.Sender     = serviceRepository{}
)

// Fetch opens content.
func (s serviceRepository) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	rc, err := s.inner.Fetch(ctx, target)
	return rc, refusal(err)
}

// Exists reports whether content is there.
func (s serviceRepository) Exists(ctx context.Context, target ocispec.Descriptor) (bool, error) {
	there, err := s.inner.Exists(ctx, target)
	return there, refusal(err)
}

// Push stores content.
func (s serviceRepository) Push(ctx context.Context, expected ocispec.Descriptor, from io.Reader) error {
	return refusal(s.inner.Push(ctx, expected, from))
}

// Resolve returns the manifest that a tag or digest names.
func (s serviceRepository) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := s.inner.Resolve(ctx, reference)
	return desc, refusal(err)
}

// Tag makes a tag name a manifest.
func (s serviceRepository) Tag(ctx context.Context, desc ocispec.Descriptor, reference string) error {
	return refusal(s.inner.Tag(ctx, desc, reference))
}

// Predecessors lists the referrers of a manifest.
func (s serviceRepository) Predecessors(ctx context.Context, node ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	found, err := s.inner.Predecessors(ctx, node)
	return found, refusal(err)
}

// Referrers lists the referrers of a manifest page by page.
func (s serviceRepository) Referrers(ctx context.Context, desc ocispec.Descriptor, artifactType string, fn func([]ocispec.Descriptor) error) error {
	return refusal(s.inner.Referrers(ctx, desc, artifactType, fn))
}

// Send stores a blob, which it may have to read more than once.
func (s serviceRepository) Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	return refusal(s.inner.Send(ctx, desc, open))
}

// Mount asks for a blob of another repository.
func (s serviceRepository) Mount(ctx context.Context, desc ocispec.Descriptor, from string, getContent func() (io.ReadCloser, error)) error {
	return refusal(s.inner.Mount(ctx, desc, from, getContent))
}

// Delete takes a manifest out of the repository.
func (s serviceRepository) Delete(ctx context.Context, desc ocispec.Descriptor) error {
	err := s.inner.Delete(ctx, desc)
	var response *errcode.ErrorResponse
	if errors.As(err, &response) && response.StatusCode == http.StatusMethodNotAllowed && len(response.Errors) > 0 {
		return KeptError{registry.Errorf(registry.CodePolicy, "%s", response.Errors[0].Message)}
	}
	return refusal(err)
}

// refusal turns answers of 401 and 403 into CodeUnauthenticated and CodeForbidden with the service's message;
// the answer to a HEAD has no message. Other errors stay as they are.
func refusal(err error) error {
	var response *errcode.ErrorResponse
	if !errors.As(err, &response) {
		return err
	}
	message := http.StatusText(response.StatusCode)
	if len(response.Errors) > 0 {
		message = response.Errors[0].Message
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return registry.Errorf(registry.CodeUnauthenticated, "%s", message)
	case http.StatusForbidden:
		return registry.Errorf(registry.CodeForbidden, "%s %s: %s", response.Method, response.URL.Path, message)
	}
	return err
}
