package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
)

// Service says where a service is, and how this machine speaks to it.
type Service struct {
	URL          string
	TLSCA        string // PEM file of a CA of the service; empty: those of the system alone
	PolicyFolder string // has environments.yaml, which says whom this machine trusts
	Agent        string // of requests: "mlpromote/1.2.3"

	Getenv func(name string) string
	Note   func(format string, args ...any) // tells people something
}

// Open speaks to the service: content over its OCI endpoint, or on the
// registry of its environment, all else over REST, which the client does.
// Trust is that of this side.
func (s Service) Open(ctx context.Context) (*Registry, *client.Client, error) {
	url, err := client.ParseURL(s.URL)
	if err != nil {
		return nil, nil, err
	}
	var transport http.RoundTripper
	content := &remote.Repositories{Agent: s.Agent, Local: func(repository string) (oci.Repository, error) {
		return remote.Service(url.Host, repository, url.Scheme == "http", transport)
	}}
	if transport, err = s.transport(ctx, url, content); err != nil {
		return nil, nil, err
	}
	store := oci.New(content.Open, oci.Options{})
	api, err := client.New(client.Config{URL: s.URL, Content: store, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		return nil, nil, err
	}
	envs, err := api.Environments(ctx)
	if registry.HasCode(err, registry.CodeUnauthenticated) {
		return nil, nil, registry.WithHint(err, "MLPROMOTE_TOKEN holds a token that %s takes, or docker login %s keeps one", url, url.Host)
	}
	if err != nil {
		return nil, nil, strangeCertificate(err)
	}
	content.Environments = envs
	trust, err := Trust{PolicyFolder: s.PolicyFolder}.open()
	if err != nil {
		return nil, nil, err
	}
	opened := &Registry{
		Interface: api, Envs: envs, Store: store, Content: content, Host: url.Host, Nodes: api, NodeTypes: api.NodeTypes(),
		Verify: trust.Verify, VerifyNote: trust.VerifyNote, RoleKeys: trust.RoleKeys, KeyIDs: trust.KeyIDs,
	}
	return opened, api, nil
}

// strangeCertificate says what to do about a CA that this machine does not know.
func strangeCertificate(err error) error {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return err
	}
	return registry.WithHint(err, "--tls-ca FILE, or MLPROMOTE_CA=FILE, trusts a CA that this machine does not know")
}
