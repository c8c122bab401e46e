package storage

import (
	"context"
	"time"
)

const (
	// ContentMarkName is the name of the object or file that holds a [ContentMark]: directly
	// below the prefix of a bucket, or in the data directory.
	ContentMarkName = "mlpromote-owner.json"

	// ContentMarkVersion is the version of the marks that this program writes and reads.
	ContentMarkVersion = 1

	// DirectoryStorage is what a catalog records as the storage of content in a directory.
	DirectoryStorage = "directory"

	// maxPreviousOwners bounds the owners that a mark lists.
	maxPreviousOwners = 16
)

// ContentMark names the catalog that owns stored content. It is stored with the content. Only
// the owner may add or delete content there.
type ContentMark struct {
	Version  int       `json:"v"`
	Catalog  string    `json:"catalog"`            // identity of the owning catalog
	Instance string    `json:"instance,omitempty"` // which copy of that catalog: CatalogIdentity.Instance
	Epoch    int64     `json:"epoch"`              // 1 for the first owner; every takeover adds one
	Since    time.Time `json:"since"`              // when this owner began
	Previous []string  `json:"previous,omitempty"` // the earlier owners, latest first
}

// CatalogIdentity is what a catalog has recorded about itself and about the content that it
// owns.
type CatalogIdentity struct {
	ID      string   // random, generated with the catalog; a restored catalog gets a new one
	Origins []string // the catalogs that it was restored from, latest first
	// Instance identifies the place of the catalog itself. It distinguishes the original from a
	// copy of the database that was made without a restore. It is empty if the catalog is a file
	// beside its content, so that both are copied together.
	Instance string
	Storage  string // where its content is: the URL of a bucket, or DirectoryStorage; empty: not recorded
	Epoch    int64  // of the mark with which it owns that content; 0: not recorded
}

// Owner returns the mark that makes a catalog the owner of content. before is the current mark,
// or nil.
func (c CatalogIdentity) Owner(before *ContentMark, now time.Time) ContentMark {
	m := ContentMark{
		Version:  ContentMarkVersion,
		Catalog:  c.ID,
		Instance: c.Instance,
		Epoch:    c.Epoch + 1,
		Since:    now.UTC(),
	}
	if before == nil {
		if c.Instance == "" { // a deleted mark is restored with its epoch
			m.Epoch = max(c.Epoch, 1)
		}
		return m
	}
	m.Epoch = max(m.Epoch, before.Epoch+1)
	m.Previous = before.Previous
	if before.Catalog != c.ID {
		m.Previous = append([]string{before.Catalog}, m.Previous...)
	}
	m.Previous = m.Previous[:min(len(m.Previous), maxPreviousOwners)]
	return m
}

// ContentMarks stores the mark of one place. Implementations are safe for concurrent use, also
// by several processes.
type ContentMarks interface {
	// ContentMark returns the mark, or nil if there is no mark, and a tag that changes with it.
	ContentMark(ctx context.Context) (m *ContentMark, tag string, err error)
	// SetContentMark durably replaces the mark that has the tag. An empty tag means that
	// there is no mark yet. Errors: CodeConflict if the mark has changed; CodeUnavailable if
	// the storage cannot tell.
	SetContentMark(ctx context.Context, m ContentMark, tag string) error
	// DeleteContentMark deletes the mark that has the tag. Errors: CodeConflict.
	DeleteContentMark(ctx context.Context, tag string) error
	// Overlaps names other marked places that contain this one or are inside it.
	Overlaps(ctx context.Context) ([]string, error)
}

// CatalogIdentities stores what a catalog records about itself. Implementations are safe for
// concurrent use, also by several processes.
type CatalogIdentities interface {
	CatalogIdentity(ctx context.Context) (CatalogIdentity, error)
	// RecordContent records the storage and epoch of after in place of those of before.
	// Errors: CodeConflict if they have changed.
	RecordContent(ctx context.Context, before, after CatalogIdentity) error
}

// ContentOwner checks that a catalog owns its content.
type ContentOwner interface {
	// OwnsContent reads the mark and returns the epoch in which the catalog owns its content. Each
	// takeover increases the epoch. Check it before each batch of deletions, and stop if it
	// changed. Errors: why the content cannot be changed.
	OwnsContent(ctx context.Context) (epoch int64, err error)
}

// CollectionLock allows one collector of a catalog at a time, across all processes.
type CollectionLock interface {
	// LockCollection waits until no other collector has the lock, or ctx ends.
	LockCollection(ctx context.Context) (CollectionSession, error)
}

// CollectionSession is a lock that a collector holds.
type CollectionSession interface {
	// Held checks that the lock is still held: a database may have ended it. Call it right before
	// a deletion. Errors: CodeUnavailable if the lock is lost.
	Held(ctx context.Context) error
	// Release releases the lock.
	Release()
}
