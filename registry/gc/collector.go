package gc

import (
	"context"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// MinGrace is the shortest grace period during normal operation. A client that was told that
// content exists must be able to finish its work within it.
const MinGrace = time.Minute

// Config configures a Collector. All fields except Current, Alone, Sweep, Surplus and Expire are
// required.
type Config struct {
	Environments policy.Environments
	// Current returns the environments that a new collection uses to decide what stays. If it
	// fails, the collection stops. Nil means Environments.
	Current   func(ctx context.Context) (policy.Environments, error)
	Store     storage.GCStore
	Catalog   storage.Catalog
	Intents   storage.Intents
	Blobs     storage.Blobs   // as they are stored
	Remover   storage.Remover // of Blobs
	Garbage   Garbage
	Clock     storage.CatalogClock
	Owner     storage.ContentOwner   // confirms that the catalog owns the content
	Lock      storage.CollectionLock // excludes other collectors of the catalog
	Retention Retention              // its Grace is also the time between marking and deletion
	// Alone means that no other process writes names or content of this catalog until Collect
	// returns, on any machine. Then Collect deletes unreferenced content at once, and any Grace is
	// valid.
	Alone bool
	// Sweep removes leftovers of broken uploads and returns their number. It may be nil.
	Sweep func(ctx context.Context) (int, error)
	// Surplus finds content that can be composed, and yields digests whose own bytes it has just found to be surplus. It
	// may yield content with a recipe from before a time; the zero time means all. It may be nil.
	Surplus func(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error]
	// Expire deletes rows of the catalog that have expired, such as reports of nodes, and returns their number. It may be nil.
	Expire func(ctx context.Context) (int, error)
}

// Collector deletes unreferenced content: records of manifests, members, and bytes
// that no repository holds. The service can keep running. The collector marks content first and
// deletes it one grace period later, unless it was used meanwhile. Several collectors can work
// on the same content, and killing one does no damage.
type Collector struct{ Config }

// New checks the configuration. Errors: CodeInvalid.
func New(c Config) (*Collector, error) {
	if c.Store == nil || c.Catalog == nil || c.Intents == nil || c.Blobs == nil || c.Remover == nil || c.Garbage == nil ||
		c.Clock == nil ||
		c.Owner == nil ||
		c.Lock == nil {
		return nil, registry.Errorf(registry.CodeInvalid,
			"collector: store, catalog, intents, blobs, remover, garbage, clock, owner and lock are all required")
	}
	if c.Retention.Grace < 0 || !c.Alone && c.Retention.Grace < MinGrace {
		return nil, registry.Errorf(registry.CodeInvalid,
			"collector: a grace of %v is too short: want at least %v, and more than any push takes", c.Retention.Grace, MinGrace)
	}
	if err := c.Retention.Validate(); err != nil {
		return nil, err
	}
	if c.Current == nil {
		c.Current = func(context.Context) (policy.Environments, error) { return c.Environments, nil }
	}
	return &Collector{c}, nil
}

// Collected counts the results of a collection.
type Collected struct {
	Marked              int                 `json:"marked"`        // records that were newly marked
	Unmarked            int                 `json:"unmarked"`      // records that were unmarked
	Manifests           int                 `json:"manifests"`     // deleted manifest records
	Members             int                 `json:"members"`       // blobs that were removed from a repository
	Blobs               int                 `json:"blobs"`         // blobs with deleted bytes
	Bytes               int64               `json:"bytes"`         // of those blobs
	Composed            int                 `json:"composed"`      // contents whose own bytes were deleted, since they are composed of others
	ComposedBytes       int64               `json:"composedBytes"` // of those own bytes
	Leftovers           int                 `json:"leftovers"`     // of broken uploads
	Intents             int                 `json:"intents"`       // abandoned promotions that were deleted
	Expired             int                 `json:"expired"`       // reports of nodes that no longer count
	SkippedRepositories []SkippedRepository `json:"skippedRepositories,omitempty"`
}

// SkippedRepository is a repository that was skipped because its references are unknown.
type SkippedRepository struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}

// wait returns how long content stays marked before its deletion.
func (c *Collector) wait() time.Duration {
	if c.Alone {
		return 0
	}
	return c.Retention.Grace
}
