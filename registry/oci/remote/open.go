package remote

import (
	"context"

	orasremote "oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

// Open opens a repository, and returns the same value for the same name: its client detects the features
// of the registry once, and two updates of one list of referrers in this process never overlap.
func (c *Repositories) Open(_ context.Context, repository string) (oci.Repository, error) {
	host := c.host(repository)
	if host == "" {
		return c.Local(repository)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.opened[repository]; ok {
		return e, nil
	}
	e, err := c.external(host, repository)
	if err != nil {
		return nil, err
	}
	if c.opened == nil {
		c.opened = make(map[string]*external)
	}
	c.opened[repository] = e
	return e, nil
}

// At opens a repository of any registry, also of one that belongs to no environment.
func (c *Repositories) At(host, repository string) (oci.Repository, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.external(host, repository)
}

func (c *Repositories) external(host, repository string) (*external, error) {
	writer, err := c.remote(host, repository)
	if err != nil {
		return nil, err
	}
	reader, err := c.remote(host, repository)
	return &external{from: c, host: host, writer: transfer.New(writer, c.Transfer), reader: reader}, err
}

func (c *Repositories) remote(host, repository string) (*orasremote.Repository, error) {
	repo, err := orasremote.NewRepository(host + "/" + repository)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s/%s: %w", host, repository, err)
	}
	repo.Client = c.client(host, repo.Reference.Host())
	repo.PlainHTTP = IsLoopback(host)
	repo.SkipReferrersGC = true // many registries refuse deletions, and an untagged index harms nothing
	repo.ReferrerListMaxPages = maxReferrerPages
	return repo, nil
}
