package snapshots

import (
	"context"
	"errors"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// postgresTarget is a database that a catalog is restored into.
type postgresTarget struct{ *postgres.DB }

// openEmptyDatabase opens the database that is named, or gives nil where none is. One that
// has anything is refused before any work, unless an earlier try may have put it there.
func (j Job) openEmptyDatabase(ctx context.Context) (*postgresTarget, error) {
	if j.At.Database == "" {
		return nil, nil //nolint:nilnil // the catalog stays in the directory
	}
	db, err := postgres.Open(ctx, j.At.Database)
	if err != nil {
		return nil, err
	}
	if !j.At.Dir().Has(datadir.RestoringFile) {
		err = db.RefuseUsed(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &postgresTarget{db}, nil
}

// from is the identity that the database has when the catalog is in it.
func (t *postgresTarget) from(ctx context.Context, source *sqlite.DB) (storage.CatalogIdentities, error) {
	original, err := source.CatalogIdentity(ctx)
	return restoredFrom{t.DB, append([]string{original.ID}, original.Origins...)}, err
}

// restoredFrom is a catalog whose origins it does not know yet.
type restoredFrom struct {
	storage.CatalogIdentities
	origins []string
}

func (r restoredFrom) CatalogIdentity(ctx context.Context) (storage.CatalogIdentity, error) {
	c, err := r.CatalogIdentities.CatalogIdentity(ctx)
	c.Origins = r.origins
	return c, err
}

// catalogTaker gives what puts the catalog of a snapshot into the database.
func (j Job) catalogTaker(db *postgresTarget, snapshot backup.Snapshot) func(context.Context, string) error {
	return func(ctx context.Context, path string) error {
		if err := importCatalog(ctx, db.DB, path, snapshot); err != nil {
			return err
		}
		return j.At.Dir().SetCatalogID(db.ID())
	}
}

// importCatalog makes the catalog in db that of the file, and holds what is there then
// against the snapshot. What an earlier try has committed is not done again.
func importCatalog(ctx context.Context, db *postgres.DB, path string, snapshot backup.Snapshot) error {
	for e, err := range db.History(ctx, history.HistoryQuery{Descending: true, Limit: 1}) {
		if err != nil {
			return err
		}
		if follows(e, snapshot) {
			return sameCatalog(ctx, db, snapshot)
		}
	}
	from, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Import(ctx, from), from.Close()); err != nil {
		return err
	}
	return sameCatalog(ctx, db, snapshot)
}

// follows reports whether an event is the one that a restore adds to the history of a snapshot.
func follows(e history.Event, snapshot backup.Snapshot) bool {
	return e.Kind == history.EventRestore && e.Seq == snapshot.Events+1 && e.Prev == snapshot.Last
}

// sameCatalog reads the history in the database, row by row, and compares its end, which
// its chain makes that of all of it, with the event that a restore adds to the snapshot's. Errors: CodeTrust.
func sameCatalog(ctx context.Context, db *postgres.DB, snapshot backup.Snapshot) error {
	var last history.Event
	for e, err := range db.History(ctx, history.HistoryQuery{}) {
		if err == nil {
			err = e.VerifyChain(last)
		}
		if err != nil {
			return err
		}
		last = e
	}
	heads, err := db.Heads(ctx, "", "")
	if err != nil {
		return err
	}
	if !follows(last, snapshot) || len(heads) != snapshot.Heads {
		return registry.Errorf(registry.CodeTrust,
			"%s has %d heads and a history of %d events that ends with a %s after %s, and snapshot %s has %d heads and %d events up to %s",
			db, len(heads), last.Seq, last.Kind, last.Prev, snapshot.Name, snapshot.Heads, snapshot.Events, snapshot.Last)
	}
	return nil
}
