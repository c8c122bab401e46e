package distribution

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// Config is what a handler is made of.
type Config struct {
	Blobs   registry.Blobs   // required
	Refs    registry.Refs    // required
	Deleter registry.Deleter // required; over the same names as Refs
	Uploads registry.Uploads // required; they end in Blobs

	// Authorize says whether the caller, whom the context names, may have access: nil
	// is yes. It is asked before anything is looked up. Errors are answered by code:
	// CodeUnauthenticated is 401, CodeForbidden 403, CodeNotFound 404 (no such repository);
	// messages of these are shown to the caller. Required: a handler that asks nobody
	// cannot be made.
	Authorize func(ctx context.Context, a Access) error

	// Damaged is called for every request of content whose bytes do not match its digest. It
	// may be nil.
	Damaged func(ctx context.Context, d registry.Digest, err error)

	// Redirect lets clients pull blobs from where Blobs keeps them, by URLs that are good
	// for so long, if Blobs is a [Redirector]. Whoever has such a URL can read that one
	// blob. 0 sends all bytes through the handler.
	Redirect time.Duration

	// Principal names the caller, whom the context names: an upload belongs to whoever
	// began it, and to nobody else who may push. nil means that nobody is told from
	// anybody.
	Principal func(ctx context.Context) string

	// MaxUploads bounds the uploads that a principal has under way, and UploadCounts counts
	// them, in the states of Uploads; it is required with a bound. 0 means no bound.
	MaxUploads   int
	UploadCounts registry.UploadCounts

	// MaxReferrers bounds the manifests that a principal may push for one subject; 0 means no
	// bound. ReferrerCounts counts them, and is required with a bound. Callers without a name
	// are not bounded. Concurrent pushes may exceed the bound by their number.
	MaxReferrers   int
	ReferrerCounts registry.ReferrerCounts

	// Challenge gives the WWW-Authenticate header of a 401, for the access that would be
	// needed; nil means Basic.
	Challenge func(r *http.Request, a Access) string
	// Logger gets what callers are not told; nil discards it.
	Logger *slog.Logger
	// MaxManifestBytes bounds a manifest; 0 means [DefaultMaxManifestBytes].
	MaxManifestBytes int64
	// MaxTags bounds one page of a list of tags; 0 means [DefaultMaxTags].
	MaxTags int
}

const (
	// DefaultMaxManifestBytes is the size that the protocol wants to be supported.
	DefaultMaxManifestBytes = 4 << 20
	// DefaultMaxTags is how many tags are listed at a time, and how many at most.
	DefaultMaxTags = 1000
)

func basicChallenge(*http.Request, Access) string { return `Basic realm="mlpromote", charset="UTF-8"` }

// Access is what a caller wants to do.
type Access struct {
	Repository string // empty: only to know whether this registry is for him
	Action     Action
}

// Action is a kind of access to a repository.
type Action string

// The actions. Who pushes also asks what is there already, which is a pull.
const (
	Pull   Action = "pull"
	Push   Action = "push"
	Delete Action = "delete"
)

// handler is Config with its defaults filled in.
type handler struct {
	Config
	routes    map[endpoint]map[string]route
	manifests *lru.Cache[registry.Digest, []byte]
	// sightings is the content that matched its digest when it was last hashed.
	sightings *lru.Cache[registry.Digest, sighting]
	// largeLists bounds the large lists in memory.
	largeLists chan struct{}
}

// New makes the handler of all paths under /v2/. Mount it at the root of its host,
// which the protocol wants, with nothing around it that buffers or compresses bodies.
// Errors: CodeInvalid when a required field of c is nil.
func New(c Config) (http.Handler, error) {
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"Blobs", c.Blobs == nil}, {"Refs", c.Refs == nil}, {"Deleter", c.Deleter == nil},
		{"Uploads", c.Uploads == nil}, {"Authorize", c.Authorize == nil},
		{"UploadCounts", c.MaxUploads > 0 && c.UploadCounts == nil},
		{"ReferrerCounts", c.MaxReferrers > 0 && c.ReferrerCounts == nil},
	} {
		if required.missing {
			return nil, registry.Errorf(registry.CodeInvalid, "distribution: Config.%s is required", required.name)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Principal == nil {
		c.Principal = func(context.Context) string { return "" }
	}
	if c.Challenge == nil {
		c.Challenge = basicChallenge
	}
	c.MaxManifestBytes = cmp.Or(c.MaxManifestBytes, DefaultMaxManifestBytes)
	c.MaxTags = cmp.Or(c.MaxTags, DefaultMaxTags)
	return &handler{
		Config: c, routes: routes(), manifests: lru.New[registry.Digest, []byte](manifestsBytes), largeLists: make(chan struct{}, largeLists),
		sightings: lru.New[registry.Digest, sighting](checkedBytes),
	}, nil
}
