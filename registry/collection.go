package registry

import (
	"context"
	"iter"
	"time"
)

// Holding is a record of a manifest or blob in a repository, as the garbage collector sees it.
type Holding struct {
	Digest    Digest
	Manifest  bool      // true for a manifest, false for a blob of the repository
	MediaType string    // manifests only
	Size      int64     // bytes
	Created   time.Time // when it was first recorded in the repository
	Condemned time.Time // when it was marked for deletion; zero if it is not marked
	Tags      []string  // manifests only, in byte order
}

// HoldingKey names a Holding within its repository.
type HoldingKey struct {
	Digest   Digest
	Manifest bool
}

// Key returns the key of the holding.
func (h Holding) Key() HoldingKey { return HoldingKey{h.Digest, h.Manifest} }

// Settlement is what a collector decides to change in a repository.
type Settlement struct {
	// At is the time from which newly marked records count as marked. It is not before the
	// time at which the settlement is applied.
	At      time.Time
	Condemn []HoldingKey // records to mark; marked ones keep their time
	Rescind []HoldingKey
	Remove  []HoldingKey // records to delete; a manifest goes with its tags and derived data
}

// Empty reports whether the settlement changes nothing.
func (s Settlement) Empty() bool { return len(s.Condemn)+len(s.Rescind)+len(s.Remove) == 0 }

// Stock gives the garbage collector access to the records of all repositories. Collection has
// two steps, so that it is safe during pushes, even of other processes. It first marks
// unreferenced records (Condemn) and later deletes those that are still marked. Reading a
// manifest or blob through [Refs], or putting it again, unmarks it (Rescind). A client that was
// told that content exists can so rely on it for that time. The reads of Stock itself do not
// unmark.
//
// Implementations are safe for concurrent use, also by several processes.
type Stock interface {
	// Repositories lists the repositories that hold any record, in byte order.
	Repositories(ctx context.Context) ([]string, error)
	// Holdings lists all records of a repository at one instant: manifests, then blobs, by digest.
	Holdings(ctx context.Context, repository string) ([]Holding, error)
	// Settle applies what decide returns for the records of the repository. It does so in one
	// transaction that is durable on return and blocks other writes to these records, so decide
	// must not write them. If decide fails, Settle returns its error and changes nothing.
	Settle(ctx context.Context, repository string, decide func([]Holding) (Settlement, error)) error
}

// Condemned stores the marks of bytes that no repository holds. Implementations are safe for
// concurrent use, also by several processes. Writes are durable on return.
type Condemned interface {
	// Unheld returns the digests that no repository holds, in the given order.
	Unheld(ctx context.Context, digests []Digest) ([]Digest, error)
	// Condemn marks digests as unheld since at, or since now if at is past. Marked digests keep
	// their time.
	Condemn(ctx context.Context, at time.Time, digests []Digest) error
	// Rescind unmarks d. If a removal of d is in progress, Rescind changes nothing and returns
	// that removal. A writer that adds bytes to a repository calls it before it checks whether
	// they are stored, and again after adding them.
	Rescind(ctx context.Context, d Digest) (Removal, error)
	// Due lists the digests that were marked at or before the given time, in any order.
	Due(ctx context.Context, before time.Time) iter.Seq2[Digest, error]
}
