package main

import (
	"context"
	"net/http"
	"os"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/retry"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/oci"
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
		repo.Client = &http.Client{Transport: retry.NewTransport(transport)}
		repo.PlainHTTP = url.Scheme == "http"
		return serviceRepository{repo}, nil
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
		return nil, err
	}
	content.environments = envs
	mine, err := environments.Load(a.data)
	if err != nil {
		return nil, err
	}
	trust, err := signer.NewTrust(mine.Trust, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(a.data, path))
	})
	if err != nil {
		return nil, err
	}
	return &instance{
		Interface: api, environments: envs, store: store, verify: trust.Verify, keys: a.keyring(), host: url.Host,
		close: func() error { return nil },
	}, nil
}
