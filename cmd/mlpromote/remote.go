package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/signer"
)

// openRemote speaks to a service: content over its OCI endpoint, or on the
// registry of its environment, all else over REST.
// Keys and trust are those of this side; the promoter's key stays on the other.
func (a *app) openRemote(ctx context.Context) (*instance, error) {
	url, err := client.ParseURL(a.registry)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper
	content := a.contents(func(repository string) (oci.Repository, error) {
		repo, err := remote.NewRepository(url.Host + "/" + repository)
		if err != nil {
			return nil, err
		}
		repo.Client = &http.Client{Transport: transfer.Transport(transport)}
		repo.PlainHTTP = url.Scheme == "http"
		return serviceRepository{exact{transfer.New(repo, transfer.Options{})}}, nil
	})
	if transport, err = a.serviceTransport(ctx, url, content); err != nil {
		return nil, err
	}
	store := oci.New(content.open, oci.Options{})
	api, err := client.New(client.Config{URL: a.registry, Content: store, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		return nil, err
	}
	envs, err := api.Environments(ctx)
	if registry.HasCode(err, registry.CodeUnauthenticated) {
		return nil, registry.WithHint(err, "MLPROMOTE_TOKEN holds a token that %s takes, or docker login %s keeps one", url, url.Host)
	}
	if err != nil {
		return nil, strangeCertificate(err)
	}
	content.environments = envs
	mine, err := environments.Load(a.policyFolder())
	if err != nil {
		return nil, err
	}
	trust, err := signer.NewTrust(mine.Trust, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(a.policyFolder(), path))
	})
	if err != nil {
		return nil, err
	}
	return &instance{
		Interface: api, environments: envs, store: store, content: content, verify: trust.Verify, keys: a.keyring(), nodeTypes: api.NodeTypes(), tokens: api, configuration: api, host: url.Host,
		close: func() error { return nil },
	}, nil
}

// strangeCertificate says what to do about a CA that this machine does not know.
func strangeCertificate(err error) error {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return err
	}
	return registry.WithHint(err, "--tls-ca FILE, or MLPROMOTE_CA=FILE, trusts a CA that this machine does not know")
}

// exact is a repository on a registry that does not have what is described wrongly, as
// [oci.Repository] wants it. Anybody who may attach something to a release can describe it
// wrongly, and must not make that look like a registry that fails.
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

// stored describes what the registry has under the digest of target. Blobs have no media
// type there, so it is target's.
func (e exact) stored(ctx context.Context, target ocispec.Descriptor) (ocispec.Descriptor, error) {
	stored, err := e.Manifests().Resolve(ctx, string(target.Digest))
	if errors.Is(err, errdef.ErrNotFound) {
		stored, err = e.Blobs().Resolve(ctx, string(target.Digest))
		stored.MediaType = target.MediaType
	}
	return stored, err
}
