// Package remote opens repositories that are reached over the network: repositories of environments with
// content on another OCI registry, with the credentials of the docker config, and repositories of an mlpromote service.
package remote

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/policy"
)

// maxReferrerPages bounds how many pages of one list of referrers a registry can make a client read. One
// page is in memory at a time.
const maxReferrerPages = 4096

// Repositories opens repositories by name, each on the registry of its environment. Set the fields before the
// first call; after that it is safe for concurrent use.
type Repositories struct {
	// Environments lists the environments that have a registry of their own.
	Environments policy.Environments
	// Local opens a repository of an environment that has none.
	Local func(repository string) (oci.Repository, error)
	// Keychain finds credentials; nil reads the docker config.
	Keychain authn.Keychain
	// Agent is the User-Agent of requests.
	Agent string
	// Transfer configures how blobs are sent and fetched.
	Transfer transfer.Options
	// Tell is called with the name of each credential that is used for the first time; may be nil.
	Tell func(host, credential string)

	base http.RoundTripper // sends requests; nil means http.DefaultTransport

	mu      sync.Mutex
	opened  map[string]*external    // by repository
	clients map[string]*auth.Client // by host

	using sync.Mutex
	used  map[string]string // names of credentials by host
}

// host returns the registry of a repository, or "" if [Repositories.Local] opens it.
func (c *Repositories) host(repository string) string {
	environment, _, _ := strings.Cut(repository, "/")
	e, err := c.Environments.Find(environment)
	if err != nil {
		return ""
	}
	return e.Registry
}

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

// IsLoopback reports whether HOST[:PORT] is this machine, which is reached without TLS.
func IsLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
