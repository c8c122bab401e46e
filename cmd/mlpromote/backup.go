package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

func (a *app) backupCommand() *cobra.Command {
	var keep int
	c := &cobra.Command{
		Use:   "backup DEST",
		Short: "Save the data directory, also while it is served",
		Long: `Adds a snapshot of the data directory to DEST: the catalog at one instant (names, heads,
holds, history, tokens), the content that it names, environments.yaml and what else the
operator wrote. Content is copied once for all snapshots. Private keys are not saved: keep
those where you keep secrets. DEST itself is one, for it has the secrets of webhooks.
stdout: the name of the snapshot, which counts from then on.`,
		Example: "  mlpromote backup /backup/mlpromote --data /srv/mlpromote --keep 14\n  mlpromote restore /backup/mlpromote --verify",
		Args:    exactly("DEST"),
		RunE: func(c *cobra.Command, args []string) error {
			if keep < 0 {
				return registry.Errorf(registry.CodeInvalid, "--keep %d: want the number of snapshots to keep, or 0 for all", keep)
			}
			return a.backup(c.Context(), args[0], keep)
		},
	}
	c.Flags().IntVar(&keep, "keep", 7, "snapshots to keep in DEST, this one included; 0: all")
	return c
}

func (a *app) restoreCommand() *cobra.Command {
	var name string
	var verify bool
	c := &cobra.Command{
		Use:   "restore SRC",
		Short: "Make a data directory from a backup",
		Long: `Makes the data directory, which must be empty or not exist, what it was when the snapshot
was made. Every digest and the chain of the history are checked before it is done. Broken
off, it is run again. Private keys are not in a backup: put them into DATA/keys after.
With --database the catalog goes into that, which must be empty: so a registry moves to PostgreSQL.
stdout: the name of the snapshot.`,
		Example: "  mlpromote restore /backup/mlpromote --data /srv/mlpromote\n  mlpromote restore /backup/mlpromote --verify",
		Args:    exactly("SRC"),
		RunE:    func(c *cobra.Command, args []string) error { return a.restore(c.Context(), args[0], name, verify) },
	}
	c.Flags().StringVar(&name, "snapshot", "", "which one (default the newest)")
	c.Flags().BoolVar(&verify, "verify", false, "check that it could be restored, and restore nothing")
	return c
}

func (a *app) backup(ctx context.Context, dest string, keep int) (err error) {
	if err := a.hasOwnCatalog("backup"); err != nil {
		return err
	}
	if _, err := os.Stat(a.data); errors.Is(err, fs.ErrNotExist) {
		return noData(a.data)
	}
	if inside(a.data, dest) {
		return registry.Errorf(registry.CodeInvalid, "%s is in the data directory %s, with which it would be lost: want another place, on another disk", dest, a.data)
	}
	blobs, err := a.openStorage(ctx, nil)
	if err != nil {
		return err
	}
	files, err := operatorFiles(a.data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return err
	}
	_, unlock, err := lockExclusive(dest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	store := a.backupStore(dest, "copy")
	snapshot, err := store.Make(ctx, backup.Source{
		CopyCatalog: func(ctx context.Context, path string) error {
			return sqlite.Snapshot(ctx, filepath.Join(a.data, sqliteFile), path)
		},
		Blobs: blobs, Dir: a.data, Files: files, Tool: a.tool(), Now: now,
	})
	if err != nil {
		return err
	}
	var pruned backup.Pruned
	if keep > 0 {
		if pruned, err = store.Prune(ctx, keep); err != nil {
			return err
		}
	}
	a.ui.note("saved %s; private keys are not in it", inSnapshot(snapshot))
	return a.ui.result(snapshot.Name, struct {
		backup.Snapshot
		Pruned backup.Pruned `json:"pruned"`
	}{snapshot, pruned})
}

// inSnapshot says what is in a snapshot.
func inSnapshot(s backup.Snapshot) string {
	return fmt.Sprintf("%d heads, %d rows of history, %d blobs with %s, %d files", s.Heads, s.Events, s.Blobs, size(s.Bytes), len(s.Files))
}

// hasOwnCatalog refuses what works on a catalog in a file where it is elsewhere.
func (a *app) hasOwnCatalog(verb string) error {
	if a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "%s works on a data directory, not on --registry %s: run it on the machine that has the directory, also while it is served", verb, a.registry)
	}
	id, err := a.claimed()
	if err != nil || a.database == "" && id == "" {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: the catalog of %s is in PostgreSQL, which has tools of its own for that", verb, a.data),
		"pg_dump and pg_restore, then the content: docs/how-to/operate.md")
}

// inside reports whether path is dir or below it.
func inside(dir, path string) bool {
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	rel, err := filepath.Rel(from, to)
	return errors.Join(err1, err2, err) == nil && (rel == "." || filepath.IsLocal(rel))
}

// operatorFiles are what the operator wrote into the data directory: settings, policy,
// node types, public keys and certificates. What may be a secret is left out: a file that
// is of no kind named here, or that holds a private key.
func operatorFiles(dir string) (files []string, err error) {
	for _, pattern := range []string{"*.yaml", "*.pub", "*.pem", "*.crt", "keys/*.pub", "node-types/*.json"} {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(text, []byte("PRIVATE KEY")) {
				files = append(files, file)
			}
		}
	}
	slices.Sort(files)
	return files, nil
}

func (a *app) backupStore(dir, verb string) *backup.Store {
	return &backup.Store{
		Dir: dir, Blobs: blob.NewDir(dir), Progress: a.ui.bytes(verb),
		Open: func(ctx context.Context, path string) (backup.Catalog, error) { return sqlite.Open(ctx, path) },
	}
}

func (a *app) restore(ctx context.Context, source, name string, verify bool) (err error) {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.CodeNotFound, "no backup %s here", source)
	}
	if unix.Access(source, unix.W_OK) == nil { // nobody prunes what cannot be written
		_, unlock, err := lockExclusive(source)
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
	} else if keys, _ := filepath.Glob(filepath.Join(a.keyDir(), "*.key")); len(keys) == 0 {
		a.ui.note("there are no private keys in %s yet; without them nothing can be promoted", a.keyDir())
	}
	a.ui.note("%s: %s", done, inSnapshot(snapshot))
	return a.ui.result(snapshot.Name, snapshot)
}

func (a *app) verifyBackup(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	scratch, err := os.MkdirTemp("", "mlpromote-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	return store.Verify(ctx, snapshot, scratch)
}

// restoringFile is in a data directory that is being restored, so that nobody takes half
// of it for all.
const restoringFile = "restoring"

func (a *app) restoreInto(ctx context.Context, store *backup.Store, snapshot backup.Snapshot) (err error) {
	if a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "restore works on a data directory, not on --registry %s: run it on the machine that is to have the directory", a.registry)
	}
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return err
	}
	_, unlock, err := lockExclusive(a.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	take, done, err := a.catalogTaker(ctx, snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := a.claimRestore(snapshot.Name); err != nil {
		return err
	}
	blobs, err := a.openStorage(ctx, nil)
	if err != nil {
		return err
	}
	if err := store.Restore(ctx, snapshot, backup.Target{Dir: a.data, Blobs: blobs, TakeCatalog: take}); err != nil {
		return err
	}
	return errors.Join(ignoreAll(a.data), os.Remove(filepath.Join(a.data, restoringFile)))
}

// claimRestore makes sure that the directory is empty, or has the rest of an earlier try
// to restore the same.
func (a *app) claimRestore(name string) error {
	marker := filepath.Join(a.data, restoringFile)
	text, err := os.ReadFile(marker)
	switch was := strings.TrimSpace(string(text)); {
	case err == nil && was == name:
		return nil
	case err == nil:
		return registry.Errorf(registry.CodeConflict, "%s has half of snapshot %s: finish that with --snapshot %s, or remove the directory", a.data, was, was)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	entries, err := os.ReadDir(a.data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockFile {
			return registry.Errorf(registry.CodeConflict, "%s is not empty (it has %s): want an empty directory, or one that does not exist, as --data", a.data, e.Name())
		}
	}
	return os.WriteFile(marker, []byte(name+"\n"), 0o600)
}

// refuseHalf refuses a directory whose restore did not finish.
func (a *app) refuseHalf() error {
	if _, err := os.Stat(filepath.Join(a.data, restoringFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeUnavailable, "%s has half of a backup: a restore is at work, or did not finish", a.data), "mlpromote restore SRC --data %s", a.data)
}

// bytes shows how much of a long step is done.
func (u *ui) bytes(verb string) func(done, total int64) {
	step := pipeline.Step{State: pipeline.StepStarted}
	began := now()
	return func(done, total int64) {
		if step.Name == "" {
			step.Name = verb + " " + size(total)
			u.progress(step)
		}
		step.State, step.Note = pipeline.StepMoving, size(done)
		if done >= total {
			step.State, step.Note, step.Elapsed = pipeline.StepDone, "", now().Sub(began)
		}
		u.progress(step)
	}
}
