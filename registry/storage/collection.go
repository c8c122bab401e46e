package storage

import (
	"context"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// GCRecord is a record of a manifest or blob in a repository, as the garbage collector sees it.
type GCRecord struct {
	Digest    registry.Digest
	Manifest  bool      // true for a manifest, false for a blob of the repository
	MediaType string    // manifests only
	Size      int64     // bytes
	Created   time.Time // when it was first recorded in the repository
	Marked    time.Time // when it was marked for deletion; zero if it is not marked
	Tags      []string  // manifests only, in byte order
}

// GCRecordKey names a GCRecord within its repository.
type GCRecordKey struct {
	Digest   registry.Digest
	Manifest bool
}

// Key returns the key of the record.
func (h GCRecord) Key() GCRecordKey { return GCRecordKey{h.Digest, h.Manifest} }

// GCChanges is what a collector decides to change in a repository.
type GCChanges struct {
	// At is the time from which newly marked records count as marked. It is not before the
	// time at which the changes are applied.
	At     time.Time
	Mark   []GCRecordKey // records to mark; marked ones keep their time
	Unmark []GCRecordKey
	Delete []GCRecordKey // records to delete; a manifest goes with its tags and derived data
}

// Empty reports whether there is nothing to change.
func (s GCChanges) Empty() bool { return len(s.Mark)+len(s.Unmark)+len(s.Delete) == 0 }

// GCStore gives the garbage collector access to the records of all repositories. Collection has
// two steps, so that it is safe during pushes, even of other processes. It first marks
// unreferenced records (Mark) and later deletes those that are still marked. Reading a
// manifest or blob through [RepositoryRecords], or putting it again, unmarks it (Unmark). A client that was
// told that content exists can so rely on it for that time. The reads of GCStore itself do not
// unmark.
//
// Implementations are safe for concurrent use, also by several processes.
type GCStore interface {
	// Repositories lists the repositories that hold any record, in byte order.
	Repositories(ctx context.Context) ([]string, error)
	// Records lists all records of a repository at one instant: manifests, then blobs, by digest.
	Records(ctx context.Context, repository string) ([]GCRecord, error)
	// UpdateRecords applies what decide returns for the records of the repository. It does so in one
	// transaction that is durable on return and blocks other writes to these records, so decide
	// must not write them. If decide fails, UpdateRecords returns its error and changes nothing.
	UpdateRecords(ctx context.Context, repository string, decide func([]GCRecord) (GCChanges, error)) error
}

// MarkStore stores the marks of bytes that no repository holds. Implementations are safe for
// concurrent use, also by several processes. Writes are durable on return.
type MarkStore interface {
	// WithoutRepository returns the digests that no repository holds, in the given order.
	WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error)
	// Mark marks digests as unheld since at, or since now if at is past. Marked digests keep
	// their time.
	Mark(ctx context.Context, at time.Time, digests []registry.Digest) error
	// Unmark unmarks d. If a removal of d is in progress, Unmark changes nothing and returns
	// that removal. A writer that adds bytes to a repository calls it before it checks whether
	// they are stored, and again after adding them.
	Unmark(ctx context.Context, d registry.Digest) (Removal, error)
	// MarkedBefore lists the digests that were marked at or before the given time, in any order.
	MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error]
}
