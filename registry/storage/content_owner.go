package storage

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
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

// ContentPlace is a place for content, as [DecideContentAccess] sees it.
type ContentPlace struct {
	Storage string // as a catalog records it
	Name    string // as messages name it
	Mark    *ContentMark
	// Overlaps names other marked places that contain this one or are inside it.
	Overlaps []string
	// The following fields are needed only for a place without a mark.
	Empty        bool // no blobs are stored there
	CatalogEmpty bool // the catalog names no content
	Known        bool // the catalog used this place before marks existed
}

// ContentAccess is what a catalog may do with stored content.
type ContentAccess string

// The kinds of access. The zero value refuses all access.
const (
	ContentRefused   ContentAccess = ""          // neither read nor change
	ContentReadOnly  ContentAccess = "read-only" // read
	ContentClaimable ContentAccess = "claimable" // no owner yet; mark the place or record its mark, then decide again
	ContentOwned     ContentAccess = "owned"     // read, add and delete
)

// ContentVerdict is the decision about a catalog and stored content.
type ContentVerdict struct {
	Access   ContentAccess
	Epoch    int64  // of the mark, if the content is owned
	Reason   string // why it is not owned
	Remedy   string // what to do then
	TakeOver bool   // whether an operator may make this catalog the owner
}

const (
	remedyTakeOver = "if the other one will never run again: mlpromote restore --take-over"
	remedyOther    = "configure the storage of this catalog, or an empty bucket or prefix for a new catalog"
)

// DecideContentAccess decides what a catalog may do with the content of a place. Only the
// catalog that the mark names may change content, and only in the epoch that the catalog has
// recorded.
func DecideContentAccess(c CatalogIdentity, p ContentPlace) ContentVerdict {
	if len(p.Overlaps) > 0 {
		return ContentVerdict{
			Reason: p.Name + " and " + p.Overlaps[0] + " overlap, and each has its own content",
			Remedy: "give each registry a prefix that contains no other",
		}
	}
	if p.Mark == nil {
		return decideUnmarked(c, p)
	}
	m := *p.Mark
	readOnly := ContentVerdict{Access: ContentReadOnly, Remedy: remedyTakeOver, TakeOver: true}
	switch {
	case m.Version != ContentMarkVersion:
		return ContentVerdict{Reason: p.Name + " was marked by a newer version of this program", Remedy: "use that version"}
	case m.Catalog == c.ID && m.Instance == c.Instance:
		return decideOwn(c, p, m)
	case m.Catalog == c.ID:
		readOnly.Reason = p.Name + " belongs to another copy of catalog " + c.ID + ": this one was copied, moved or restored"
	case slices.Contains(c.Origins, m.Catalog):
		readOnly.Reason = p.Name + " belongs to catalog " + m.Catalog + ", and catalog " + c.ID + " was restored from its " +
			"backup"
	case slices.Contains(m.Previous, c.ID):
		since := m.Since.UTC().Format(time.RFC3339)
		readOnly.Reason = p.Name + " belongs to catalog " + m.Catalog + ", which took it over from " +
			"catalog " + c.ID + " at " + since
		readOnly.Remedy = "stop this one; if the other one will never run again: mlpromote restore --take-over"
	default:
		return ContentVerdict{
			Reason: p.Name + " belongs to catalog " + m.Catalog + ", and this one is " + c.ID,
			Remedy: remedyOther,
		}
	}
	return readOnly
}

// decideUnmarked decides about a place without a mark.
func decideUnmarked(c CatalogIdentity, p ContentPlace) ContentVerdict {
	switch {
	case c.Epoch > 0 && c.Storage != p.Storage:
		return elsewhere(c, p)
	case c.Epoch > 0 && c.Instance == "":
		return ContentVerdict{Access: ContentClaimable} // the catalog is in the same directory
	case c.Epoch > 0 && p.Empty:
		return ContentVerdict{
			TakeOver: true,
			Reason: p.Name + " is empty, but catalog " + c.ID + " has content there:" +
				" this is another place with that name, or the content is lost",
			Remedy: "configure the right directory, or the endpoint of the right bucket; if the content is lost: mlpromote " +
				"restore --take-over",
		}
	case c.Epoch > 0:
		return ContentVerdict{
			Access: ContentReadOnly, TakeOver: true,
			Reason: p.Name + " has no " + ContentMarkName + " that names catalog " + c.ID +
				": this is another place with that name, or the mark was deleted",
			Remedy: "if this is the content of this catalog: mlpromote restore --take-over",
		}
	case p.Known, p.CatalogEmpty && p.Empty:
		return ContentVerdict{Access: ContentClaimable}
	case p.CatalogEmpty:
		return ContentVerdict{
			Reason: p.Name + " has content that catalog " + c.ID + " does not know and would delete",
			Remedy: "use the catalog that owns this content (restore it from a backup if it was lost), or another bucket or " +
				"prefix",
		}
	}
	return ContentVerdict{
		Reason: p.Name + " does not have the content of catalog " + c.ID, TakeOver: true,
		Remedy: "configure the storage of this catalog; if this is what remains of it: mlpromote restore --take-over",
	}
}

// decideOwn decides about a place whose mark names this catalog.
func decideOwn(c CatalogIdentity, p ContentPlace, m ContentMark) ContentVerdict {
	switch {
	case c.Epoch == 0:
		return ContentVerdict{Access: ContentClaimable}
	case c.Storage != p.Storage:
		return elsewhere(c, p)
	case c.Epoch == m.Epoch:
		return ContentVerdict{Access: ContentOwned, Epoch: m.Epoch}
	case c.Epoch < m.Epoch:
		return ContentVerdict{
			Access: ContentReadOnly, Remedy: remedyTakeOver, TakeOver: true,
			Reason: p.Name + " got another owner since catalog " + c.ID + " recorded it:" +
				" the catalog was set back to an earlier state, or a take-over did not finish",
		}
	}
	return ContentVerdict{
		Access: ContentReadOnly, Remedy: "if this is the content of this catalog: mlpromote restore " +
			"--take-over", TakeOver: true,
		Reason: "the mark of " + p.Name + " is older than the one that catalog " + c.ID + " recorded: the content was set " +
			"back to an earlier state",
	}
}

// elsewhere is the verdict for a catalog whose content is in another place.
func elsewhere(c CatalogIdentity, p ContentPlace) ContentVerdict {
	where := c.Storage
	if where == DirectoryStorage {
		where = "a data directory, which has the file " + ContentMarkName
	}
	return ContentVerdict{
		Reason: "the content of " +
			"catalog " + c.ID + " is in " + where + ", not in " + p.Name, TakeOver: p.Mark != nil || !p.Empty,
		Remedy: "use that place; if the content was moved to " + p.Name + ": mlpromote restore --take-over",
	}
}

// Err returns nil if the content is owned. Otherwise it says why the content cannot be changed:
// CodeConflict if it can still be read, CodeInvalid if not.
func (v ContentVerdict) Err() error {
	switch v.Access {
	case ContentOwned:
		return nil
	case ContentReadOnly:
		err := registry.Lastingf(registry.CodeConflict, "nothing was changed: %s", v.Reason)
		return registry.ForClients(registry.WithHint(err, "%s", v.Remedy),
			"this registry can be read but not written: it does not own its content")
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s", v.Reason), "%s", v.Remedy)
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
