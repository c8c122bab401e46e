package datadir

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// claimTries bounds how often Open starts again after another process changed something first.
const claimTries = 5

// Ownership connects a catalog with a place for its content. It is safe for concurrent use.
type Ownership struct {
	Catalog storage.CatalogIdentities
	Marks   storage.ContentMarks
	Storage string // the place, as the catalog records it
	Name    string // the place, as messages name it
	// Beside is true if the catalog is a file next to the content, so that one is always
	// copied with the other.
	Beside bool
	// Survey fills in Empty, CatalogEmpty and Known, which decide about a place without a mark.
	Survey func(ctx context.Context, p *Place) error
	// Outlast waits until the storage can no longer carry out a deletion that began before the
	// call. TakeOver calls it. Errors: CodeUnavailable.
	Outlast func(ctx context.Context) error
	Now     storage.Clock
}

var _ storage.ContentOwner = (*Ownership)(nil)

// state has the data of the catalog and the place.
type state struct {
	catalog storage.CatalogIdentity
	place   Place
	tag     string // of the mark
}

// look reads the catalog and the place. It searches for overlapping places only if the place is
// about to get another owner, because a registry that later claims such a place is refused.
func (o *Ownership) look(ctx context.Context, newOwner bool) (state, Verdict, error) {
	var s state
	var err error
	if s.catalog, err = o.Catalog.CatalogIdentity(ctx); err != nil {
		return s, Verdict{}, err
	}
	if o.Beside {
		s.catalog.Instance = ""
	}
	s.place.Storage, s.place.Name = o.Storage, o.Name
	if s.place.Mark, s.tag, err = o.Marks.ContentMark(ctx); err != nil {
		return s, Verdict{}, err
	}
	if s.place.Mark == nil {
		if err := o.Survey(ctx, &s.place); err != nil {
			return s, Verdict{}, err
		}
	}
	if newOwner || s.catalog.Epoch == 0 {
		if s.place.Overlaps, err = o.Marks.Overlaps(ctx); err != nil {
			return s, Verdict{}, err
		}
	}
	return s, Decide(s.catalog, s.place), nil
}

// Open decides whether the catalog may change the content. If the content has no owner, Open
// makes the catalog its permanent owner. If several catalogs try, one succeeds.
func (o *Ownership) Open(ctx context.Context) (Verdict, error) {
	for try := 1; ; try++ {
		s, verdict, err := o.look(ctx, false)
		if err != nil || verdict.Access != Claimable {
			return verdict, err
		}
		err = o.claim(ctx, s)
		if err != nil && (!registry.HasCode(err, registry.CodeConflict) || try == claimTries) {
			return Verdict{}, err
		}
	}
}

// claim marks a place that has no mark, or records in the catalog the mark that names it.
// Errors: CodeConflict if either changed meanwhile.
func (o *Ownership) claim(ctx context.Context, s state) error {
	if s.place.Mark == nil {
		return o.mark(ctx, s)
	}
	after := s.catalog
	after.Storage, after.Epoch = o.Storage, s.place.Mark.Epoch
	return o.Catalog.RecordContent(ctx, s.catalog, after)
}

// mark makes the mark. If two registries whose places overlap do so at the same moment, at
// least one of them sees the other's mark and deletes its own. That is safe: no process relies
// on a mark before the catalog has recorded it.
func (o *Ownership) mark(ctx context.Context, s state) error {
	if err := o.Marks.SetContentMark(ctx, s.catalog.Owner(nil, o.Now()), ""); err != nil {
		return err
	}
	overlaps, err := o.Marks.Overlaps(ctx)
	if err != nil || len(overlaps) == 0 {
		return err
	}
	s.place.Overlaps = overlaps
	refused := Decide(s.catalog, s.place).Err()
	if _, tag, err := o.Marks.ContentMark(ctx); err == nil {
		_ = o.Marks.DeleteContentMark(ctx, tag) // a mark that stays is harmless: the catalog did not record it
	}
	return refused
}

// OwnsContent reads the catalog and the place again.
func (o *Ownership) OwnsContent(ctx context.Context) (int64, error) {
	_, verdict, err := o.look(ctx, false)
	if err != nil {
		return 0, err
	}
	return verdict.Epoch, verdict.Err()
}

// TakeOver makes the catalog the owner of content if the content belongs to the catalog that it
// was restored from, belongs to another copy of it, or lost its mark. When it returns, the
// previous owner can no longer delete content. It returns the mark of the previous owner, if
// that was another catalog. Call it again if it was interrupted. Errors: CodeInvalid if the
// content belongs to an unrelated catalog; those of Outlast.
func (o *Ownership) TakeOver(ctx context.Context) (before *storage.ContentMark, err error) {
	verdict, err := o.Open(ctx)
	if err != nil || verdict.Access == Owned {
		return nil, err
	}
	if !verdict.TakeOver {
		return nil, verdict.Err()
	}
	s, verdict, err := o.look(ctx, true)
	if err != nil {
		return nil, err
	}
	if !verdict.TakeOver {
		return nil, verdict.Err()
	}
	m := s.catalog.Owner(s.place.Mark, o.Now())
	if err := o.Marks.SetContentMark(ctx, m, s.tag); err != nil {
		return nil, err
	}
	if err := o.Outlast(ctx); err != nil {
		return nil, err
	}
	after := s.catalog
	after.Storage, after.Epoch = o.Storage, m.Epoch
	return s.place.Mark, o.Catalog.RecordContent(ctx, s.catalog, after)
}
