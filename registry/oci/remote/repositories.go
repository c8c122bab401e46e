// Package remote opens repositories that are reached over the network: repositories of environments with
// content on another OCI registry, with the credentials of the docker config, and repositories of an mlpromote service.
package remote

import (
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"oras.land/oras-go/v2/registry/remote/auth"

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

// IsLoopback reports whether HOST[:PORT] is this machine, which is reached without TLS.
func IsLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
