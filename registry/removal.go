package registry

import (
	"context"
	"time"
)

// A removal deletes bytes outside of any transaction, so that neither slow storage nor a
// suspended collector blocks writes to the catalog:
//
//  1. A collector begins a removal in the catalog. From then on, writers of the same bytes
//     wait until it ends.
//  2. It gets a [Permit] from the storage, checks that the removal lasts longer than the
//     permit, and deletes. The storage itself refuses a deletion that comes late, after a
//     pause of any length.
//  3. It ends the removal. The removal of a killed collector expires after [RemovalTime].
const (
	// RemovalTime is when a removal expires, by the clock of the catalog.
	RemovalTime = 20 * time.Second
	// PermitTime is how long the storage accepts deletions by one permit, by its own clock.
	PermitTime = 5 * time.Second
	// RemovalMargin is the least time between the end of a permit and that of its removal. It
	// covers the time in which the storage carries out what it accepted, and clocks that run
	// at different speeds.
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
	Digests []Digest
	Before  time.Time // digests that were condemned later stay
	// Abandoned is a time whose permits can no longer be in use. Removals that had expired by
	// then are taken over; with the zero time, none are.
	Abandoned time.Time
	Lasting   time.Duration
}

// Removals records removals where every process sees them. Implementations are safe for
// concurrent use, also by several processes. Writes are durable on return.
type Removals interface {
	// BeginRemoval begins a removal and returns its digests: those that are condemned, that
	// no repository holds and that are in no other removal. Digests that a repository holds
	// are no longer condemned. A writer that adds a removed digest later learns of the
	// removal from Rescind.
	BeginRemoval(ctx context.Context, r RemovalRequest) ([]Digest, error)
	// ConfirmRemoval reports whether a removal lasts for at least this long from now.
	ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error)
	// EndRemoval ends a removal. Removed digests are no longer condemned. Kept ones, whose
	// deletion was not tried, are condemned as before. For the others the removal goes on: a
	// deletion may still be in progress.
	EndRemoval(ctx context.Context, id string, removed, kept []Digest) error
	// TakeOver forgets that d is condemned if its removal id has expired. The caller must
	// first wait for the end of its permits: [Remover].
	TakeOver(ctx context.Context, d Digest, id string) error
}

// Remover deletes bytes for collectors. It is the storage's part of a removal.
type Remover interface {
	// Permit returns a permit to delete, for [PermitTime] from the call. Errors:
	// CodeUnavailable, also if the storage cannot refuse late deletions.
	Permit(ctx context.Context) (Permit, error)
	// Await waits until permits of expired removals can no longer be in use. Errors:
	// CodeUnavailable if one stays in use.
	Await(ctx context.Context) error
}

// Permit allows deletions for a while. The caller that got it closes it.
type Permit interface {
	// Delete deletes d. It succeeds if d does not exist. After an error, d may be deleted or
	// not, but not later than the permit allows.
	Delete(ctx context.Context, d Digest) error
	Close() error
}
