package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// external is a repository of an external registry. It reads lists of referrers with a separate
// client. The client that writes would assume that a registry which does not acknowledge a
// subject has no referrers API, and would look only at the fallback tag.
type external struct {
	from   *Repositories
	host   string
	writer *transfer.Repository
	reader *orasremote.Repository
}

var (
	_ oci.Repository = (*external)(nil)
	_ oci.Mounter    = (*external)(nil)
	_ oci.Sender     = (*external)(nil)
)

// Fetch opens content.
func (e *external) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	rc, err := exact{e.writer}.Fetch(ctx, target)
	return rc, e.explain(ctx, err)
}

// Exists reports whether content exists.
func (e *external) Exists(ctx context.Context, target ocispec.Descriptor) (bool, error) {
	there, err := e.writer.Exists(ctx, target)
	return there, e.explain(ctx, err)
}

// Push stores content.
func (e *external) Push(ctx context.Context, expected ocispec.Descriptor, from io.Reader) error {
	return e.explain(ctx, e.writer.Push(ctx, expected, from))
}

// Resolve returns the manifest to which a tag or digest refers.
func (e *external) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := e.writer.Resolve(ctx, reference)
	return desc, e.explain(ctx, err)
}

// Tag sets a tag to a manifest.
func (e *external) Tag(ctx context.Context, desc ocispec.Descriptor, reference string) error {
	return e.explain(ctx, e.writer.Tag(ctx, desc, reference))
}

// Predecessors lists the referrers of a manifest: by the API, else by the fallback tag.
func (e *external) Predecessors(ctx context.Context, node ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	found, err := e.reader.Predecessors(ctx, node)
	return found, e.explain(ctx, err)
}

// Referrers lists the referrers of a manifest page by page, like Predecessors.
func (e *external) Referrers(ctx context.Context, desc ocispec.Descriptor, artifactType string, fn func([]ocispec.Descriptor) error) error {
	return e.explain(ctx, e.reader.Referrers(ctx, desc, artifactType, fn))
}

// Send stores a blob, which it may have to read more than once.
func (e *external) Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	return e.explain(ctx, e.writer.Send(ctx, desc, open))
}

// Mount asks the registry to mount a blob of another of its repositories. A blob of another
// registry is sent.
func (e *external) Mount(ctx context.Context, desc ocispec.Descriptor, from string, open func() (io.ReadCloser, error)) error {
	if e.from.host(from) != e.host {
		return e.Send(ctx, desc, open)
	}
	return e.explain(ctx, e.writer.Mount(ctx, desc, from, open))
}

// explain adds to a registry's refusal which credential was refused, and where to configure
// another. Errors about missing content stay as they are.
func (e *external) explain(ctx context.Context, err error) error {
	var response *errcode.ErrorResponse
	var own *registry.Error
	switch {
	case errors.As(err, &own): // of a credential, or of what is being sent
		return own
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return e.refused(ctx, "wants a login")
	case registry.LastingTLS(err):
		return unknownCA(registry.Lastingf(registry.CodeUnavailable, "registry %s: %w", e.host, err), e.host)
	case !errors.As(err, &response):
		return err
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return e.refused(ctx, "refuses "+response.Method+" "+response.URL.Path+" with "+strings.ToLower(http.StatusText(response.StatusCode)))
	case response.StatusCode == http.StatusInsufficientStorage:
		return registry.Errorf(registry.CodeFull, "registry %s: %w", e.host, err)
	default:
		return registry.Errorf(registry.CodeUnavailable, "registry %s: %w", e.host, err)
	}
}

// unknownCA adds what to do if the certificate of the host is signed by a CA that this machine does not know.
func unknownCA(err error, host string) error {
	if !errors.As(err, new(x509.UnknownAuthorityError)) {
		return err
	}
	return registry.WithHint(err, "install the CA of %s on this machine, or name its file in SSL_CERT_FILE", host)
}

func (e *external) refused(ctx context.Context, what string) error {
	err := registry.Errorf(registry.CodeUnavailable, "registry %s %s (credential: %s)", e.host, what, e.from.credentialName(ctx, e.host))
	return registry.WithHint(registry.WithExit(err, registry.ExitAuthentication),
		"docker login %s, or a credential helper in the docker config (DOCKER_CONFIG), sets another credential", e.host)
}
