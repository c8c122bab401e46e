package distribution

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config configures a handler.
type Config struct {
	Blobs   storage.Blobs             // required
	Refs    storage.RepositoryRecords // required
	Deleter storage.Deleter           // required; over the same names as Refs
	Uploads storage.Uploads           // required; they store into Blobs

	// Authorize checks whether the caller, which is in ctx, may have access; nil means yes. It is
	// called before any lookup. Its error code selects the status: CodeUnauthenticated is 401,
	// CodeForbidden 403, CodeNotFound 404 (no such repository). Their messages are shown to the
	// caller. Required.
	Authorize func(ctx context.Context, a Access) error

	// Prefixes returns prefixes that cover the names of all repositories that the caller in ctx may list, so that other
	// names are not read. They are sorted, and none begins with another. [Config.Authorize] decides about each name.
	// nil reads all names.
	Prefixes func(ctx context.Context) []string

	// Inspect checks the content of a received manifest with existing references, before the manifest
	// is stored; its errors refuse the push. nil stores what callers may push.
	Inspect func(ctx context.Context, repository string, d registry.Digest, manifest []byte) error

	// Damaged is called for every request of content that does not match its digest. It
	// may be nil.
	Damaged func(ctx context.Context, d registry.Digest, err error)

	// Redirect is the lifetime of URLs by which clients pull blobs directly from the storage, if
	// Blobs is a [Redirector]. Anyone with such a URL can read that blob. 0 sends all bytes
	// through the handler.
	Redirect time.Duration

	// Principal returns the name of the caller in ctx. Only the principal that began an upload may
	// continue it. nil means that callers are not distinguished.
	Principal func(ctx context.Context) string

	// MaxUploads limits the uploads in progress per principal; 0 means no limit. UploadCounts
	// counts them and is required with a limit.
	MaxUploads   int
	UploadCounts storage.UploadCounts

	// MaxReferrers limits the manifests that a principal may push for one subject; 0 means no
	// limit. ReferrerCounts counts them and is required with a limit. Callers without a name are
	// not limited. Concurrent pushes may exceed the limit by their number.
	MaxReferrers   int
	ReferrerCounts storage.ReferrerCounts

	// Challenge returns the WWW-Authenticate header of a 401, for the required access; nil means
	// Basic.
	Challenge func(r *http.Request, a Access) string
	// Logger logs errors that callers do not see; nil discards them.
	Logger *slog.Logger
	// MaxManifestBytes limits the size of a manifest; 0 means [DefaultMaxManifestBytes].
	MaxManifestBytes int64
	// MaxTags limits a page of tags or repositories; 0 means [DefaultMaxTags].
	MaxTags int
}

const (
	// DefaultMaxManifestBytes is the size that registries should support according to the
	// protocol.
	DefaultMaxManifestBytes = 4 << 20
	// DefaultMaxTags is the default and maximum page size of tags and repositories.
	DefaultMaxTags = 1000
)

// Access is an access to a repository.
type Access struct {
	Repository string // empty: check only whether the caller may use the registry, or list its repositories
	Action     Action
}

// Action is a kind of access to a repository.
type Action string

// The actions. A push includes a pull, because clients check what exists.
const (
	Pull   Action = "pull"
	Push   Action = "push"
	Delete Action = "delete"
	List   Action = "list" // see the name
)
