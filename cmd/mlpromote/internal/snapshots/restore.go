package snapshots

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Restore makes the data directory what it was when a snapshot was made, or with verify only checks that this is
// possible. An empty name means the newest snapshot.
func (j Job) Restore(ctx context.Context, source, name string, verify bool) (snapshot Snapshot, err error) {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, registry.Errorf(registry.CodeNotFound, "no backup %s here", source)
	}
	if unix.Access(source, unix.W_OK) == nil { // nobody prunes what cannot be written
		_, unlock, err := datadir.Dir{Path: source}.LockExclusive(ctx, nil)
		if err != nil {
			return Snapshot{}, err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	store := j.backupStore(source, "check")
	snapshot, err = store.Find(name)
	if err != nil {
		return Snapshot{}, err
	}
	if verify {
		err = j.verifyBackup(ctx, store, snapshot)
	} else {
		err = j.restoreInto(ctx, store, snapshot)
	}
	if err != nil {
		return Snapshot{}, err
	}
	return snapshot, nil
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

func (j Job) restoreInto(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	if j.At.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"restore works on a data directory, not on --registry %s: run it on the machine that is to have the directory", j.At.Registry)
	}
	if err := os.MkdirAll(j.At.Data, 0o700); err != nil {
		return err
	}
	_, unlock, err := j.At.Dir().LockExclusive(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, err := j.openEmptyDatabase(ctx)
	if err != nil {
		return err
	}
	if db != nil {
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	id, err := j.At.Dir().ClaimRestore(snapshot.Name)
	if err != nil {
		return err
	}
	place, err := j.At.OpenContent(ctx)
	if err != nil {
		return err
	}
	to := backup.Target{Dir: j.At.Data, OpenBlobs: func(ctx context.Context, path string) (registry.RepairableBlobs, error) {
		return j.openRestored(ctx, place, path, id, db)
	}}
	if db != nil {
		to.TakeCatalog = j.catalogTaker(db, snapshot)
	}
	if err := store.Restore(ctx, snapshot, to); err != nil {
		return err
	}
	return errors.Join(wiring.IgnoreAll(j.At.Data), j.At.Dir().FinishRestore())
}

// openRestored opens the content of a catalog that is being restored from the file at path.
// It makes that another catalog than the original, and with it, where nobody else owns it
// or it is taken over, the owner of the content.
func (j Job) openRestored(ctx context.Context, place wiring.ContentPlace, path, id string, db *postgresTarget) (blobs registry.RepairableBlobs, err error) {
	restored, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restored.Close()) }()
	var catalog registry.CatalogIdentities = restored
	if db != nil {
		catalog, err = db.from(ctx, restored)
	} else {
		err = restored.Renew(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	if err := j.tellTokens(ctx, restored); err != nil {
		return nil, err
	}
	owner := j.At.Ownership(place, catalog, restored)
	owner.Survey = func(ctx context.Context, p *registry.ContentPlace) error { // its content comes now
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
	if err == nil && verdict.Access == registry.ContentRefused {
		err = verdict.Err()
	}
	if err == nil && !place.Recorded {
		err = j.At.Dir().SetStorage(place.Storage)
	}
	if err != nil || verdict.Access == registry.ContentOwned {
		return place.Blobs, err
	}
	j.UI.Note("content is read and not changed here: %s; %s", verdict.Reason, verdict.Remedy)
	return datadir.NewGuard(notOwned{verdict}, 0).Repairable(place.Blobs), nil
}

// tellTokens says that tokens are as they were when the snapshot was made: nothing here knows which were revoked
// since.
func (j Job) tellTokens(ctx context.Context, restored registry.Tokens) error {
	tokens, err := restored.ListTokens(ctx)
	if err != nil {
		return err
	}
	valid := 0
	for _, t := range tokens {
		if access.Usable(t, clock.Now()) == nil {
			valid++
		}
	}
	if valid > 0 {
		j.UI.Note("%s of the snapshot can be used, also if revoked since: revoke again what was, before a service starts", registry.Count(valid, "token"))
	}
	return nil
}

// notOwned is content that is not the catalog's.
type notOwned struct{ verdict registry.ContentVerdict }

func (n notOwned) OwnsContent(context.Context) (int64, error) { return 0, n.verdict.Err() }

// TakeOver makes the catalog of a data directory the owner of its content.
func (j Job) TakeOver(ctx context.Context) (taken TakenOver, err error) {
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
	before, err := j.At.Ownership(place, db, db).TakeOver(ctx)
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
	return TakenOver{place.Name, identity.ID, identity.Epoch, before}, nil
}

// TakenOver is content that belongs to the catalog here now.
type TakenOver struct {
	Storage string                `json:"storage"`
	Catalog string                `json:"catalog"`
	Epoch   int64                 `json:"epoch"`
	Before  *registry.ContentMark `json:"before,omitempty"` // whose it was
}
