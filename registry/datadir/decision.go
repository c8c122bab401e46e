package datadir

import (
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Place is a place for content, as [Decide] sees it.
type Place struct {
	Storage string // as a catalog records it
	Name    string // as messages name it
	Mark    *storage.ContentMark
	// Overlaps names other marked places that contain this one or are inside it.
	Overlaps []string
	// The following fields are needed only for a place without a mark.
	Empty        bool // no blobs are stored there
	CatalogEmpty bool // the catalog names no content
	Known        bool // the catalog used this place before marks existed
}

// Access is what a catalog may do with stored content.
type Access string

// The kinds of access. The zero value refuses all access.
const (
	Refused   Access = ""          // neither read nor change
	ReadOnly  Access = "read-only" // read
	Claimable Access = "claimable" // no owner yet; mark the place or record its mark, then decide again
	Owned     Access = "owned"     // read, add and delete
)

// Verdict is the decision about a catalog and stored content.
type Verdict struct {
	Access   Access
	Epoch    int64  // of the mark, if the content is owned
	Reason   string // why it is not owned
	Remedy   string // what to do then
	TakeOver bool   // whether an operator may make this catalog the owner
}

const (
	remedyTakeOver = "if the other one will never run again: mlpromote restore --take-over"
	remedyOther    = "configure the storage of this catalog, or an empty bucket or prefix for a new catalog"
)

// Decide decides what a catalog may do with the content of a place. Only the
// catalog that the mark names may change content, and only in the epoch that the catalog has
// recorded.
func Decide(c storage.CatalogIdentity, p Place) Verdict {
	if len(p.Overlaps) > 0 {
		return Verdict{
			Reason: p.Name + " and " + p.Overlaps[0] + " overlap, and each has its own content",
			Remedy: "give each registry a prefix that contains no other",
		}
	}
	if p.Mark == nil {
		return decideUnmarked(c, p)
	}
	m := *p.Mark
	readOnly := Verdict{Access: ReadOnly, Remedy: remedyTakeOver, TakeOver: true}
	switch {
	case m.Version != storage.ContentMarkVersion:
		return Verdict{Reason: p.Name + " was marked by a newer version of this program", Remedy: "use that version"}
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
		return Verdict{
			Reason: p.Name + " belongs to catalog " + m.Catalog + ", and this one is " + c.ID,
			Remedy: remedyOther,
		}
	}
	return readOnly
}

// decideUnmarked decides about a place without a mark.
func decideUnmarked(c storage.CatalogIdentity, p Place) Verdict {
	switch {
	case c.Epoch > 0 && c.Storage != p.Storage:
		return elsewhere(c, p)
	case c.Epoch > 0 && c.Instance == "":
		return Verdict{Access: Claimable} // the catalog is in the same directory
	case c.Epoch > 0 && p.Empty:
		return Verdict{
			TakeOver: true,
			Reason: p.Name + " is empty, but catalog " + c.ID + " has content there:" +
				" this is another place with that name, or the content is lost",
			Remedy: "configure the right directory, or the endpoint of the right bucket; if the content is lost: mlpromote " +
				"restore --take-over",
		}
	case c.Epoch > 0:
		return Verdict{
			Access: ReadOnly, TakeOver: true,
			Reason: p.Name + " has no " + storage.ContentMarkName + " that names catalog " + c.ID +
				": this is another place with that name, or the mark was deleted",
			Remedy: "if this is the content of this catalog: mlpromote restore --take-over",
		}
	case p.Known, p.CatalogEmpty && p.Empty:
		return Verdict{Access: Claimable}
	case p.CatalogEmpty:
		return Verdict{
			Reason: p.Name + " has content that catalog " + c.ID + " does not know and would delete",
			Remedy: "use the catalog that owns this content (restore it from a backup if it was lost), or another bucket or " +
				"prefix",
		}
	}
	return Verdict{
		Reason: p.Name + " does not have the content of catalog " + c.ID, TakeOver: true,
		Remedy: "configure the storage of this catalog; if this is what remains of it: mlpromote restore --take-over",
	}
}

// decideOwn decides about a place whose mark names this catalog.
func decideOwn(c storage.CatalogIdentity, p Place, m storage.ContentMark) Verdict {
	switch {
	case c.Epoch == 0:
		return Verdict{Access: Claimable}
	case c.Storage != p.Storage:
		return elsewhere(c, p)
	case c.Epoch == m.Epoch:
		return Verdict{Access: Owned, Epoch: m.Epoch}
	case c.Epoch < m.Epoch:
		return Verdict{
			Access: ReadOnly, Remedy: remedyTakeOver, TakeOver: true,
			Reason: p.Name + " got another owner since catalog " + c.ID + " recorded it:" +
				" the catalog was set back to an earlier state, or a take-over did not finish",
		}
	}
	return Verdict{
		Access: ReadOnly, Remedy: "if this is the content of this catalog: mlpromote restore " +
			"--take-over", TakeOver: true,
		Reason: "the mark of " + p.Name + " is older than the one that catalog " + c.ID + " recorded: the content was set " +
			"back to an earlier state",
	}
}

// elsewhere is the verdict for a catalog whose content is in another place.
func elsewhere(c storage.CatalogIdentity, p Place) Verdict {
	where := c.Storage
	if where == storage.DirectoryStorage {
		where = "a data directory, which has the file " + storage.ContentMarkName
	}
	return Verdict{
		Reason: "the content of " +
			"catalog " + c.ID + " is in " + where + ", not in " + p.Name, TakeOver: p.Mark != nil || !p.Empty,
		Remedy: "use that place; if the content was moved to " + p.Name + ": mlpromote restore --take-over",
	}
}

// Err returns nil if the content is owned. Otherwise it says why the content cannot be changed:
// CodeConflict if it can still be read, CodeInvalid if not.
func (v Verdict) Err() error {
	switch v.Access {
	case Owned:
		return nil
	case ReadOnly:
		err := registry.Lastingf(registry.CodeConflict, "nothing was changed: %s", v.Reason)
		return registry.ForClients(registry.WithHint(err, "%s", v.Remedy),
			"this registry can be read but not written: it does not own its content")
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s", v.Reason), "%s", v.Remedy)
}
