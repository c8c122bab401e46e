package snapshots

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Restored is a snapshot that was restored, or could be.
type Restored struct {
	Snapshot
	Lost *Lost `json:"lost,omitempty"` // nil if it was only verified
}

// Restore makes the data directory what it was when a snapshot was made, or with verify only checks that this is
// possible. An empty name means the newest snapshot. The history gets an event that says what since is not known.
func (j Job) Restore(ctx context.Context, source, name string, verify bool, since Since) (done Restored, err error) {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return Restored{}, registry.Errorf(registry.CodeNotFound, "no backup %s here", source)
	}
	if unix.Access(source, unix.W_OK) == nil { // nobody prunes what cannot be written
		_, unlock, err := datadir.Dir{Path: source}.LockExclusive(ctx, nil)
		if err != nil {
			return Restored{}, err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	store := j.backupStore(source, "check")
	snapshot, err := store.Find(name)
	if err != nil {
		return Restored{}, err
	}
	if verify {
		return Restored{Snapshot: snapshot}, j.verifyBackup(ctx, store, snapshot)
	}
	if err := since.check("snapshot "+snapshot.Name, snapshot.Created); err != nil {
		return Restored{}, err
	}
	lost, err := j.restoreInto(ctx, store, snapshot, since)
	return Restored{snapshot, &lost}, err
}

func (j Job) verifyBackup(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	temp, err := tempdir.New("verify")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	scratch := temp.Path
	return store.Verify(ctx, snapshot, scratch)
}

func (j Job) restoreInto(ctx context.Context, store *backup.Store, snapshot backup.Snapshot, since Since) (lost Lost, err error) {
	if j.At.Registry != "" {
		return lost, registry.Errorf(registry.CodeInvalid,
			"restore works on a data directory, not on --registry %s: run it on the machine that is to have the directory", j.At.Registry)
	}
	if err := os.MkdirAll(j.At.Data, 0o700); err != nil {
		return lost, err
	}
	_, unlock, err := j.At.Dir().LockExclusive(ctx, nil)
	if err != nil {
		return lost, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, err := j.openEmptyDatabase(ctx)
	if err != nil {
		return lost, err
	}
	if db != nil {
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	id, err := j.At.Dir().ClaimRestore(snapshot.Name)
	if err != nil {
		return lost, err
	}
	place, err := j.At.OpenContent(ctx)
	if err != nil {
		return lost, err
	}
	to := backup.Target{Dir: j.At.Data, OpenBlobs: func(ctx context.Context, path string) (storage.RepairableBlobs, error) {
		restored, err := sqlite.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		blobs, err := j.openRestored(ctx, place, restored, id, db)
		if err == nil {
			lost, err = j.lost(ctx, restored, "restored from snapshot "+snapshot.Name, snapshot.Created, since)
		}
		return blobs, errors.Join(err, restored.Close())
	}}
	if db != nil {
		to.TakeCatalog = j.catalogTaker(db, snapshot)
	}
	if err := store.Restore(ctx, snapshot, to); err != nil {
		return lost, err
	}
	return lost, errors.Join(wiring.IgnoreAll(j.At.Data), j.At.Dir().FinishRestore())
}

// openRestored opens the content of a catalog that is being restored.
// It makes that another catalog than the original, and with it, where nobody else owns it
// or it is taken over, the owner of the content.
func (j Job) openRestored(
	ctx context.Context, place wiring.ContentPlace, restored *sqlite.DB, id string, db *postgresTarget,
) (blobs storage.RepairableBlobs, err error) {
	var catalog storage.CatalogIdentities = restored
	if db != nil {
		catalog, err = db.from(ctx, restored)
	} else {
		err = restored.Renew(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	owner := j.At.Ownership(place, catalog, restored)
	owner.Survey = func(ctx context.Context, p *datadir.Place) error { // its content comes now
		err := datadir.Survey(restored, place.Blobs, false)(ctx, p)
		p.CatalogEmpty, p.Known = true, false
		return err
	}
	if j.At.TakeOver {
		if _, err := owner.TakeOver(ctx); err != nil {
			return nil, err
		}
	}
	verdict, err := owner.Open(ctx)
	if err == nil && verdict.Access == datadir.Refused {
		err = verdict.Err()
	}
	if err == nil && !place.Recorded {
		err = j.At.Dir().SetStorage(place.Storage)
	}
	if err != nil {
		return nil, err
	}
	if blobs, err = composable(ctx, place.Blobs, restored); err != nil || verdict.Access == datadir.Owned {
		return blobs, err
	}
	j.UI.Note("content is read and not changed here: %s; %s", verdict.Reason, verdict.Remedy)
	return datadir.NewGuard(notOwned{verdict}, 0).Repairable(blobs), nil
}

// composable is content that is there, also by recipes. Layers that lost their own bytes since the snapshot get one here.
func composable(ctx context.Context, stored storage.RepairableBlobs, restored *sqlite.DB) (storage.RepairableBlobs, error) {
	now, err := restored.CatalogTime(ctx)
	if err != nil {
		return nil, err
	}
	for _, err := range composed.NewComposer(restored, stored, restored, composed.Least).Surplus(ctx, now) {
		if err != nil {
			return nil, err
		}
	}
	recipes, err := composed.Copy(ctx, restored)
	return composed.Repairable(stored, recipes, composed.Least), err
}

// notOwned is content that is not the catalog's.
type notOwned struct{ verdict datadir.Verdict }

func (n notOwned) OwnsContent(context.Context) (int64, error) { return 0, n.verdict.Err() }

// TakeOver makes the catalog of a data directory the owner of its content. A catalog that is not
// the owner yet may be older than the one that is: see Since.
func (j Job) TakeOver(ctx context.Context, since Since) (taken TakenOver, err error) {
	if j.At.Registry != "" {
		return TakenOver{}, registry.Errorf(registry.CodeInvalid, "restore --take-over works on a data directory, not on --registry %s", j.At.Registry)
	}
	if _, err := os.Stat(j.At.Data); errors.Is(err, fs.ErrNotExist) {
		return TakenOver{}, wiring.NoData(j.At.Data)
	}
	_, unlock, err := j.At.LockServed(ctx)
	if err != nil {
		return TakenOver{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, err := j.At.OpenDatabase(ctx)
	if err != nil {
		return TakenOver{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	place, err := j.At.OpenContent(ctx)
	if err != nil {
		return TakenOver{}, err
	}
	owner := j.At.Ownership(place, db, db)
	lost, err := j.lostBy(ctx, owner, db, since)
	if err != nil {
		return TakenOver{}, err
	}
	before, err := owner.TakeOver(ctx)
	if err == nil && !place.Recorded {
		err = j.At.Dir().SetStorage(place.Storage)
	}
	if err != nil {
		return TakenOver{}, err
	}
	identity, err := db.CatalogIdentity(ctx)
	if err != nil {
		return TakenOver{}, err
	}
	if before != nil {
		j.UI.Note("%s belonged to catalog %s, which cannot change it any more; stop what still uses that", place.Name, before.Catalog)
	}
	return TakenOver{place.Name, identity.ID, identity.Epoch, before, lost}, nil
}

// TakenOver is content that belongs to the catalog here now.
type TakenOver struct {
	Storage string               `json:"storage"`
	Catalog string               `json:"catalog"`
	Epoch   int64                `json:"epoch"`
	Before  *storage.ContentMark `json:"before,omitempty"` // whose it was
	Lost    *Lost                `json:"lost,omitempty"`   // nil if it was the owner, or was restored by this program
}

// lostBy finds out what a catalog lacks that takes content over, unless its restore did so.
func (j Job) lostBy(ctx context.Context, owner *datadir.Ownership, catalog restoredCatalog, since Since) (*Lost, error) {
	verdict, err := owner.Open(ctx)
	if err != nil || !verdict.TakeOver {
		return nil, err
	}
	var last history.Event
	for last, err = range catalog.History(ctx, history.HistoryQuery{Descending: true, Limit: 1}) {
		if err != nil {
			return nil, err
		}
	}
	if last.Kind == history.EventRestore {
		return nil, nil //nolint:nilnil // the history says it already
	}
	if err := since.check("the catalog of "+j.At.Data, last.Time); err != nil {
		return nil, err
	}
	lost, err := j.lost(ctx, catalog, "restored or copied by other means", last.Time, since)
	return &lost, err
}
