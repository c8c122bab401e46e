package main

import (
	"context"
	"net/http"

	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// client gives the one client for a registry, which keeps its tokens. Credentials go to
// the address of the registry and to nobody else.
func (c *contents) client(host, address string) *auth.Client {
	if made, ok := c.clients[host]; ok {
		return made
	}
	made := &auth.Client{
		Client: &http.Client{Transport: transfer.Transport(nil)}, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {c.agent}},
		Credential: func(ctx context.Context, asked string) (auth.Credential, error) {
			if asked != address {
				return auth.EmptyCredential, nil
			}
			found, err := c.credential(ctx, host)
			c.remember(host, found)
			return auth.Credential{Username: found.Username, Password: found.Password, RefreshToken: found.IdentityToken, AccessToken: found.RegistryToken}, err
		},
	}
	c.clients[host] = made
	return made
}

// remember keeps which credential was used last for a registry, and tells of a new one.
func (c *contents) remember(host string, l login) {
	c.using.Lock()
	defer c.using.Unlock()
	name := l.String()
	if c.used[host] == name {
		return
	}
	c.used[host] = name
	if c.tell != nil {
		c.tell(host, name)
	}
}

// usedFor names the credential that was used for a registry: "none" where it asked for none.
func (c *contents) usedFor(host string) string {
	c.using.Lock()
	defer c.using.Unlock()
	if name, ok := c.used[host]; ok {
		return name
	}
	return login{}.String()
}

// credentialName says whose credential there is for a registry, and nothing of what it is.
func (c *contents) credentialName(ctx context.Context, host string) string {
	found, err := c.credential(ctx, host)
	if err != nil {
		found = login{}
	}
	return found.String()
}
