package transfer

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry"
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

// Push stores content. If the content is not an io.Seeker and the registry loses the upload,
// Push fails, because it cannot read the content again. Errors: CodeUnavailable if the network
// or the registry fails too often; those of the content; *errcode.ErrorResponse otherwise.
func (r *Repository) Push(ctx context.Context, desc ocispec.Descriptor, content io.Reader) error {
	if isManifest(desc.MediaType) {
		return r.Repository.Push(ctx, desc, content)
	}
	return r.Send(ctx, desc, rewinding(content))
}

// rewinding returns a function that rewinds open content.
func rewinding(content io.Reader) func() (io.ReadCloser, error) {
	used := false
	return func() (io.ReadCloser, error) {
		if used {
			seeker, ok := content.(io.Seeker)
			if !ok {
				return nil, registry.Errorf(registry.CodeUnavailable, "the registry lost the upload, and the content to send cannot be read again")
			}
			if _, err := seeker.Seek(0, io.SeekStart); err != nil {
				return nil, registry.Errorf(registry.CodeInternal, "read the data to send again: %w", err)
			}
		}
		used = true
		return io.NopCloser(content), nil
	}
}

// Send stores a blob. open returns its bytes from the beginning. It is called once, and again
// each time the registry loses the upload. Errors: as Push.
func (r *Repository) Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	return r.send(ctx, desc, nil, open)
}

// Mount makes a blob of another repository of this registry available in this one, or sends it
// if the registry cannot mount.
func (r *Repository) Mount(ctx context.Context, desc ocispec.Descriptor, from string, open func() (io.ReadCloser, error)) error {
	s, err := r.begin(ctx, desc.Digest, from)
	switch {
	case err != nil && (classify(err) == unable || classify(err) == gone):
		return r.Send(ctx, desc, open) // some registries return an error where they should start an upload
	case err != nil || s == nil:
		return err
	}
	return r.send(ctx, desc, s, open)
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
