package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

func (a *app) restoreCommand() *cobra.Command {
	var name string
	var verify bool
	c := &cobra.Command{
		Use:   "restore [SRC]",
		Short: "Restore a data directory from a backup",
		Long: `Makes the data directory, which must be empty or not exist, what it was when the snapshot
was made. Every digest and the chain of the history are checked before it is done. Broken
off, it is run again. Private keys are not in a backup: put them into DATA/keys after.
With --database the catalog goes into that, which must be empty: so a registry moves to PostgreSQL.

What was restored is another catalog than the original. Content in a bucket belongs to one
catalog: as long as that is the original, the restored one reads the bucket and changes
nothing there. When the original is gone for good, --take-over makes the restored catalog
the owner; without SRC, of a data directory that was restored or copied before. The original
cannot change the content any more then.
stdout: the name of the snapshot; without SRC, where the content is.`,
		Example: `  mlpromote restore /backup/mlpromote --data /srv/mlpromote
  mlpromote restore /backup/mlpromote --verify
  mlpromote restore --take-over --data /srv/mlpromote --storage s3://models`,
		Args: func(c *cobra.Command, args []string) error {
			if a.takeOver {
				return command.AtMost("SRC")(c, args)
			}
			return command.Exactly("SRC")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if verify && a.takeOver {
				return registry.Errorf(registry.CodeInvalid, "--verify restores nothing, and --take-over is for what was restored: want one of the two")
			}
			if len(args) == 0 {
				return a.takeOverContent(c.Context())
			}
			return a.restore(c.Context(), args[0], name, verify)
		},
	}
	c.Flags().StringVar(&name, "snapshot", "", "which one (default the newest)")
	c.Flags().BoolVar(&verify, "verify", false, "check that it could be restored, and restore nothing")
	c.Flags().BoolVar(&a.takeOver, "take-over", false, "make the restored catalog the owner of its content; the original is gone for good")
	return c
}

func (a *app) restore(ctx context.Context, source, name string, verify bool) (err error) {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "no backup %s here", source)
	}
	if unix.Access(source, unix.W_OK) == nil { // nobody prunes what cannot be written
		_, unlock, err := datadir.Dir{Path: source}.LockExclusive(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	store := a.backupStore(source, "check")
	snapshot, err := store.Find(name)
	if err != nil {
		return err
	}
	if verify {
		err = a.verifyBackup(ctx, store, snapshot)
	} else {
		err = a.restoreInto(ctx, store, snapshot)
	}
	if err != nil {
		return err
	}
	done := "restored"
	if verify {
		done = "can be restored"
	} else if keys, _ := filepath.Glob(filepath.Join(a.at().KeyDir(), "*.key")); len(keys) == 0 {
		a.ui.Note("there are no private keys in %s yet; without them nothing can be promoted", a.at().KeyDir())
	}
	a.ui.Note("%s: %s", done, inSnapshot(snapshot))
	return a.ui.Result(snapshot.Name, snapshot)
}

func (a *app) verifyBackup(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	scratch, err := os.MkdirTemp("", "mlpromote-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	return store.Verify(ctx, snapshot, scratch)
}

func (a *app) restoreInto(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid, "restore works on a data directory, not on --registry %s: run it on the machine that is to have the directory", a.Registry)
	}
	if err := os.MkdirAll(a.Data, 0o700); err != nil {
		return err
	}
	_, unlock, err := a.at().Dir().LockExclusive(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, err := a.openEmptyDatabase(ctx)
	if err != nil {
		return err
	}
	if db != nil {
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	id, err := a.at().Dir().ClaimRestore(snapshot.Name)
	if err != nil {
		return err
	}
	place, err := a.at().OpenContent(ctx)
	if err != nil {
		return err
	}
	to := backup.Target{Dir: a.Data, OpenBlobs: func(ctx context.Context, path string) (registry.Blobs, error) {
		return a.openRestored(ctx, place, path, id, db)
	}}
	if db != nil {
		to.TakeCatalog = a.catalogTaker(db, snapshot)
	}
	if err := store.Restore(ctx, snapshot, to); err != nil {
		return err
	}
	return errors.Join(wiring.IgnoreAll(a.Data), a.at().Dir().FinishRestore())
}

// openRestored opens the content of a catalog that is being restored from the file at path.
// It makes that another catalog than the original, and with it, where nobody else owns it
// or it is taken over, the owner of the content.
func (a *app) openRestored(ctx context.Context, place wiring.ContentPlace, path, id string, db *postgresTarget) (blobs registry.Blobs, err error) {
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
	owner := a.at().Ownership(place, catalog, restored)
	owner.Survey = func(ctx context.Context, p *registry.ContentPlace) error { // its content comes now
		err := datadir.Survey(restored, place.Blobs, false)(ctx, p)
		p.CatalogEmpty, p.Known = true, false
		return err
	}
	if a.takeOver {
		if _, err := owner.TakeOver(ctx); err != nil {
			return nil, err
		}
	}
	verdict, err := owner.Open(ctx)
	if err == nil && verdict.Access == registry.ContentRefused {
		err = verdict.Err()
	}
	if err == nil && !place.Recorded {
		err = a.at().Dir().SetStorage(place.Storage)
	}
	if err != nil || verdict.Access == registry.ContentOwned {
		return place.Blobs, err
	}
	a.ui.Note("content is read and not changed here: %s; %s", verdict.Reason, verdict.Remedy)
	return datadir.NewGuard(notOwned{verdict}, 0).Blobs(place.Blobs), nil
}

// notOwned is content that is not the catalog's.
type notOwned struct{ verdict registry.ContentVerdict }

func (n notOwned) OwnsContent(context.Context) (int64, error) { return 0, n.verdict.Err() }

// takeOverContent makes the catalog of a data directory the owner of its content.
func (a *app) takeOverContent(ctx context.Context) (err error) {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid, "restore --take-over works on a data directory, not on --registry %s", a.Registry)
	}
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(a.Data)
	}
	_, unlock, err := a.at().LockServed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, err := a.at().OpenDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	place, err := a.at().OpenContent(ctx)
	if err != nil {
		return err
	}
	before, err := a.at().Ownership(place, db, db).TakeOver(ctx)
	if err == nil && !place.Recorded {
		err = a.at().Dir().SetStorage(place.Storage)
	}
	if err != nil {
		return err
	}
	identity, err := db.CatalogIdentity(ctx)
	if err != nil {
		return err
	}
	if before != nil {
		a.ui.Note("%s belonged to catalog %s, which cannot change it any more; stop what still uses that", place.Name, before.Catalog)
	}
	return a.ui.Result(place.Name, takenOver{place.Name, identity.ID, identity.Epoch, before})
}

// takenOver is content that belongs to the catalog here now.
type takenOver struct {
	Storage string                `json:"storage"`
	Catalog string                `json:"catalog"`
	Epoch   int64                 `json:"epoch"`
	Before  *registry.ContentMark `json:"before,omitempty"` // whose it was
}
