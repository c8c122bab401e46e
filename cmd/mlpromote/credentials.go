package main

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"mlpromote.dev/mlpromote/registry"
)

// client gives the one client for a registry, which keeps its tokens. Credentials go to
// the address of the registry and to nobody else.
func (c *contents) client(host, address string) *auth.Client {
	if made, ok := c.clients[host]; ok {
		return made
	}
	made := &auth.Client{
		Client: retry.DefaultClient, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {c.agent}},
		Credential: func(ctx context.Context, asked string) (auth.Credential, error) {
			if asked != address {
				return auth.EmptyCredential, nil
			}
			found, err := c.credential(ctx, host)
			return auth.Credential{Username: found.Username, Password: found.Password, RefreshToken: found.IdentityToken, AccessToken: found.RegistryToken}, err
		},
	}
	c.clients[host] = made
	return made
}

// credential asks the docker config and its credential helpers. Errors: CodeUnavailable.
func (c *contents) credential(ctx context.Context, host string) (authn.AuthConfig, error) {
	target, err := name.NewRegistry(host)
	if err != nil {
		return authn.AuthConfig{}, registry.Errorf(registry.CodeInvalid, "registry %s: %w", host, err)
	}
	found, err := authn.Resolve(ctx, c.keychain, target)
	if err == nil {
		var config *authn.AuthConfig
		if config, err = authn.Authorization(ctx, found); err == nil {
			return *config, nil
		}
	}
	return authn.AuthConfig{}, registry.Errorf(registry.CodeUnavailable, "credential for registry %s from the docker config: %w", host, err)
}

// credentialName says whose credential there is for a registry, and nothing of what it is.
func (c *contents) credentialName(ctx context.Context, host string) string {
	found, err := c.credential(ctx, host)
	switch {
	case err != nil || found == authn.AuthConfig{}:
		return "none"
	case found.IdentityToken != "" || found.RegistryToken != "":
		return "a token"
	default:
		return found.Username
	}
}
