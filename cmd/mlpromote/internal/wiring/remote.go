package wiring

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"

	"mlpromote.dev/mlpromote/registry/oci/remote"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/signer"
)

// openRemote speaks to a service: content over its OCI endpoint, or on the
// registry of its environment, all else over REST.
// Keys and trust are those of this side; the promoter's key stays on the other.
func (l Location) openRemote(ctx context.Context) (*Instance, error) {
	url, err := client.ParseURL(l.Registry)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper
	content := l.repositories(func(repository string) (oci.Repository, error) {
		return remote.Service(url.Host, repository, url.Scheme == "http", transport)
	})
	if transport, err = l.serviceTransport(ctx, url, content); err != nil {
		return nil, err
	}
	store := oci.New(content.Open, oci.Options{})
	api, err := client.New(client.Config{URL: l.Registry, Content: store, HTTP: &http.Client{Transport: transport}})
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
	content.Environments = envs
	mine, err := environments.Load(l.PolicyFolder())
	if err != nil {
		return nil, err
	}
	trust, err := signer.NewTrust(mine.Trust, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(l.PolicyFolder(), path))
	})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Interface: api, Envs: envs, Store: store, Content: content, Verify: trust.Verify, Keys: l.Keyring(), NodeTypes: api.NodeTypes(), Tokens: api, Configuration: api, Agreed: func(context.Context) error { return nil }, Events: api.Events, Host: url.Host,
		Close: func() error { return nil },
	}, nil
}

// strangeCertificate says what to do about a CA that this machine does not know.
func strangeCertificate(err error) error {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return err
	}
	return registry.WithHint(err, "--tls-ca FILE, or MLPROMOTE_CA=FILE, trusts a CA that this machine does not know")
}

// repositories opens repositories by the docker config's credentials; local opens those of environments
// without a registry of their own.
func (l Location) repositories(local func(repository string) (oci.Repository, error)) *remote.Repositories {
	return &remote.Repositories{Local: local, Agent: "mlpromote/" + l.Version}
}
