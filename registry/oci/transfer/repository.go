package transfer

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Options are the retry settings of a Repository. The zero Options have good defaults.
type Options struct {
	// Chunk is the number of bytes that are sent at a time, and held in memory. A smaller blob
	// is sent in one request. 0: 16 MiB.
	Chunk int64
	// Tries is the number of consecutive failures without any transferred byte after which a
	// transfer ends. 0: 8.
	Tries int
	// Pause is the longest pause after the first failure. It doubles with each further failure,
	// up to five seconds. 0: 100 ms.
	Pause time.Duration
}

const (
	defaultChunk = 16 << 20 // well above the 5 MiB that some registries require, and below the limits of others
	defaultTries = 8
	defaultPause = 100 * time.Millisecond
	maxPause     = 5 * time.Second
	maxChunk     = 256 << 20 // of what a registry may ask for
)

// Repository is a repository of a registry. It is safe for concurrent use.
type Repository struct {
	*remote.Repository
	options Options
	whole   atomic.Bool // the registry takes no chunks
}

// New returns a Repository over a repository of oras-go; its client should use [Transport].
func New(repo *remote.Repository, o Options) *Repository {
	o.Chunk = cmp.Or(o.Chunk, defaultChunk)
	o.Tries = cmp.Or(o.Tries, defaultTries)
	o.Pause = cmp.Or(o.Pause, defaultPause)
	return &Repository{Repository: repo, options: o}
}

// do sends a request with the repository's credentials.
func (r *Repository) do(req *http.Request) (*http.Response, error) {
	if r.Client != nil {
		return r.Client.Do(req)
	}
	return auth.DefaultClient.Do(req)
}

// host returns the registry's host, for messages.
func (r *Repository) host() string { return r.Reference.Registry }

// url returns the URL of something in the repository.
func (r *Repository) url(rest string) string {
	scheme := "https"
	if r.PlainHTTP {
		scheme = "http"
	}
	return scheme + "://" + r.Reference.Host() + "/v2/" + r.Reference.Repository + "/" + rest
}

// isManifest reports whether content is stored as a manifest.
func isManifest(mediaType string) bool {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex,
		"application/vnd.docker.distribution.manifest.v2+json", "application/vnd.docker.distribution.manifest.list.v2+json":
		return true
	}
	return false
}
