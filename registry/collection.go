package registry

import (
	"context"
	"iter"
	"time"
)

// Holding is a record of a repository as a collector sees it.
type Holding struct {
	Digest    Digest
	Manifest  bool      // a manifest; else a blob that belongs to the repository
	MediaType string    // of a manifest
	Size      int64     // bytes
	Created   time.Time // when it was first recorded here
	Condemned time.Time // since when it is condemned; zero: it is not
	Tags      []string  // of a manifest, in byte order
}

// HoldingKey names a Holding within its repository.
type HoldingKey struct {
	Digest   Digest
	Manifest bool
}

// Key names the holding.
func (h Holding) Key() HoldingKey { return HoldingKey{h.Digest, h.Manifest} }

// Settlement is what a collector decides about a repository.
type Settlement struct {
	At      time.Time    // from when the newly condemned count as condemned; not before the settlement is carried out
	Condemn []HoldingKey // what is condemned already keeps its time
	Rescind []HoldingKey
	Remove  []HoldingKey // records go, and with a manifest what is derived from it and its tags
}

// Empty reports whether nothing changes.
func (s Settlement) Empty() bool { return len(s.Condemn)+len(s.Rescind)+len(s.Remove) == 0 }

// Stock is the names of all repositories, for a collector. To be safe beside pushes, also
// those of other processes, collecting takes two steps: what nothing needs is condemned,
// and what is still condemned a while later goes. Asking [Refs] for a manifest or blob, or
// putting it again, rescinds: a client that was told that content is there may rely on it
// for that while. What Stock itself reads rescinds nothing. Implementations are safe for concurrent use, also by several processes.
type Stock interface {
	// Repositories lists the repositories that hold anything, in byte order.
	Repositories(ctx context.Context) ([]string, error)
	// Holdings gives all that a repository holds at one instant: manifests, then blobs, by digest.
	Holdings(ctx context.Context, repository string) ([]Holding, error)
	// Settle carries out what decide says about what the repository holds, in one
	// transaction, durable on return. Until it ends nobody rescinds or writes names of the
	// repository; decide must not try to. An error of decide is returned, and nothing has
	// changed.
	Settle(ctx context.Context, repository string, decide func([]Holding) (Settlement, error)) error
}

// Condemned is the bytes that no repository holds. Implementations are safe for concurrent
// use, also by several processes. Writes are durable on return.
type Condemned interface {
	// Unheld gives those of the digests that no repository holds, in the same order.
	Unheld(ctx context.Context, digests []Digest) ([]Digest, error)
	// Condemn records that no repository holds the digests since at, or since now if at is
	// past. Digests that are already condemned keep their time.
	Condemn(ctx context.Context, at time.Time, digests []Digest) error
	// Rescind forgets that d is condemned. If a removal of d is in progress, it changes
	// nothing and returns that removal. A writer that adds bytes to a repository calls it
	// before checking whether they are stored, and again after adding them.
	Rescind(ctx context.Context, d Digest) (Removal, error)
	// Due lists the digests that were condemned at before or earlier, in no order.
	Due(ctx context.Context, before time.Time) iter.Seq2[Digest, error]
}
