package storage

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// A removal deletes bytes outside of any transaction, so that slow storage or a suspended
// collector never blocks writes to the catalog:
//   - The collector begins a removal in the catalog. From then on, writers of the same bytes
//     wait until it ends.
//   - It gets a [Permit] from the storage, checks that the removal lasts longer than the
//     permit, and deletes. The storage refuses late deletions, even after a long pause.
//   - It ends the removal, or lets it expire if the storage may carry out a deletion twice. The
//     removal of a killed collector expires after [RemovalTime] too.
const (
	// RemovalTime is how long a removal lasts at most, by the clock of the catalog.
	RemovalTime = 20 * time.Second
	// PermitTime is how long the storage accepts deletions by one permit, by the clock of the
	// storage.
	PermitTime = 5 * time.Second
	// RemovalMargin is the minimum time between the end of a permit and the end of its removal. It
	// covers accepted deletions that are still in progress, and clocks that run at different
	// speeds.
	RemovalMargin = 5 * time.Second
)

// Removal is a removal that a collector has begun.
type Removal struct {
	ID   string        // unique; empty: there is no removal
	Left time.Duration // until it expires; 0 or less: it has expired
}

// RemovalRequest is what a collector wants to remove.
type RemovalRequest struct {
	ID      string
	Digests []registry.Digest
	Before  time.Time // digests that were marked later stay
	// Abandoned is a time whose permits can no longer be in use. Removals that had expired by then
	// are taken over. With the zero time, no removal is taken over.
	Abandoned time.Time
	Lasting   time.Duration
	// Own removes the own bytes of content that has a recipe, which stays, also while repositories hold the content.
	Own bool
}

// Removals records removals for all processes. Implementations are safe for concurrent use,
// also by several processes. Writes are durable on return.
type Removals interface {
	// BeginRemoval begins a removal and returns its digests: those that are marked, that no
	// repository holds and that are in no other removal. It unmarks digests that a repository
	// holds, and deletes the recipes of those that it returns. A writer that adds a removed digest later learns of the
	// removal from Unmark.
	//
	// With [RemovalRequest.Own], its digests are those that have a recipe, that are not marked and that are in no other
	// removal. Writers do not learn of such a removal from Unmark: until it ends or expires, no removal
	// of the content itself can begin, so that the recipe stays.
	BeginRemoval(ctx context.Context, r RemovalRequest) ([]registry.Digest, error)
	// ConfirmRemoval reports whether a removal lasts for at least this long from now.
	ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error)
	// EndRemoval ends a removal. Removed digests are no longer marked. Kept digests, whose
	// deletion was not tried, stay marked. For all others the removal continues until it expires,
	// because a deletion may still be carried out.
	EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error
	// TakeOver unmarks d if its removal id has expired. The caller must first wait for the end of
	// its permits, with [Remover].
	TakeOver(ctx context.Context, d registry.Digest, id string) error
}

// Remover deletes bytes for collectors. It is implemented by the storage.
type Remover interface {
	// Permit returns a permit to delete, valid for [PermitTime] from the call. Errors:
	// CodeUnavailable, also if the storage cannot refuse late deletions.
	Permit(ctx context.Context) (Permit, error)
	// Await waits until permits of expired removals can no longer be in use. Errors:
	// CodeUnavailable if one stays in use.
	Await(ctx context.Context) error
	// Repeatable reports whether a successful deletion may be carried out again while its permit
	// lasts, because something between the collector and the storage sends the request twice.
	Repeatable() bool
}

// Permit allows deletions for a limited time. The caller closes it.
type Permit interface {
	// Delete deletes d. It succeeds if d does not exist. After an error d may or may not be
	// deleted, but never later than the permit allows.
	Delete(ctx context.Context, d registry.Digest) error
	Close() error
}
