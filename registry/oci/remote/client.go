package remote

import (
	"context"
	"net/http"

	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// client returns the only client for a registry, which caches its tokens. It sends credentials
// only to the address of the registry, not to hosts to which that redirects.
func (c *Repositories) client(host, address string) *auth.Client {
	if made, ok := c.clients[host]; ok {
		return made
	}
	made := &auth.Client{
		Client: &http.Client{Transport: transfer.Transport(c.base)}, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {c.Agent}},
		Credential: func(ctx context.Context, asked string) (auth.Credential, error) {
			if asked != address {
				return auth.EmptyCredential, nil
			}
			found, err := c.Credential(ctx, host)
			c.remember(host, found)
			return auth.Credential{Username: found.Username, Password: found.Password,
				RefreshToken: found.IdentityToken, AccessToken: found.RegistryToken}, err
		},
	}
	if c.clients == nil {
		c.clients = make(map[string]*auth.Client)
	}
	c.clients[host] = made
	return made
}

// remember records the credential that was last used for a registry, and calls Tell if it is
// new.
func (c *Repositories) remember(host string, l Login) {
	c.using.Lock()
	defer c.using.Unlock()
	name := l.String()
	if c.used[host] == name {
		return
	}
	if c.used == nil {
		c.used = make(map[string]string)
	}
	c.used[host] = name
	if c.Tell != nil {
		c.Tell(host, name)
	}
}

// UsedFor returns the name of the credential that was sent to a registry, or "none".
func (c *Repositories) UsedFor(host string) string {
	c.using.Lock()
	defer c.using.Unlock()
	if name, ok := c.used[host]; ok {
		return name
	}
	return Login{}.String()
}

// credentialName returns the name of the credential for a registry, without its secret.
func (c *Repositories) credentialName(ctx context.Context, host string) string {
	found, err := c.Credential(ctx, host)
	if err != nil {
		found = Login{}
	}
	return found.String()
}
