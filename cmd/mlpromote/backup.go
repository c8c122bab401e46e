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

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

func (a *app) backupCommand() *cobra.Command {
	var keep int
	var verify bool
	c := &cobra.Command{
		Use:   "backup DEST",
		Short: "Back up the data directory, also while a service uses it",
		Long: `Adds a snapshot of the data directory to DEST: the catalog at one instant (names, heads,
holds, history, tokens), the content that it names, environments.yaml and what else the
operator wrote. Content is copied once for all snapshots; each run reads a tenth of the copies
again, and --verify all of them, and copies again what was damaged. Private keys are not saved: keep
those where you keep secrets. DEST itself is one, for it has the secrets of webhooks.
stdout: the name of the snapshot, which counts from then on.`,
		Example: "  mlpromote backup /backup/mlpromote --data /srv/mlpromote --keep 14\n  mlpromote restore /backup/mlpromote --verify",
		Args:    command.Exactly("DEST"),
		RunE: func(c *cobra.Command, args []string) error {
			if keep < 0 {
				return registry.Errorf(registry.CodeInvalid, "--keep %d: want the number of snapshots to keep, or 0 for all", keep)
			}
			return a.backup(c.Context(), args[0], keep, verify)
		},
	}
	c.Flags().BoolVar(&verify, "verify", false, "read all copies again, not a tenth of them")
	c.Flags().IntVar(&keep, "keep", 7, "snapshots to keep in DEST, this one included; 0: all")
	return c
}

func (a *app) backup(ctx context.Context, dest string, keep int, verify bool) (err error) {
	if err := a.hasOwnCatalog("backup"); err != nil {
		return err
	}
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(a.Data)
	}
	if inside(a.Data, dest) {
		return registry.Errorf(registry.CodeInvalid, "%s is in the data directory %s, with which it would be lost: want another place, on another disk", dest, a.Data)
	}
	content, err := a.at().OpenContent(ctx)
	if err != nil {
		return err
	}
	files, err := operatorFiles(a.Data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return err
	}
	_, unlock, err := datadir.Dir{Path: dest}.LockExclusive(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	store := a.backupStore(dest, "copy")
	snapshot, checked, err := store.Make(ctx, backup.Source{
		CopyCatalog: func(ctx context.Context, path string) error {
			return sqlite.Snapshot(ctx, filepath.Join(a.Data, datadir.DatabaseFile), path)
		},
		Blobs: content.Blobs, Dir: a.Data, Files: files, Tool: a.at().Tool(), Now: clock.Now, Verify: verify,
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
	return errors.Join(a.saved(snapshot, checked, pruned), damagedCopies(store, checked))
}

// saved says what was saved, and what of earlier snapshots was repaired.
func (a *app) saved(snapshot backup.Snapshot, checked backup.Recheck, pruned backup.Pruned) error {
	a.ui.Note("saved %s; private keys are not in it", inSnapshot(snapshot))
	if n := len(checked.Repaired); n > 0 {
		a.ui.Note("%s of earlier snapshots damaged, and copied again now: look at the disk of the backup", registry.Count(n, "copy", "copies"))
	}
	return a.ui.Result(snapshot.Name, savedSnapshot{snapshot, pruned, checked})
}

// savedSnapshot is a snapshot, and what became of earlier ones.
type savedSnapshot struct {
	backup.Snapshot
	Pruned  backup.Pruned  `json:"pruned"`
	Checked backup.Recheck `json:"checked"`
}

// damagedCopies returns an error if a copy is damaged and the source is damaged too. The snapshot
// that was just made does not need them.
func damagedCopies(store *backup.Store, checked backup.Recheck) error {
	affected, err := store.Affected(checked.Damaged)
	if err != nil || len(affected) == 0 {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeDigest, "damaged: %s that only earlier snapshots name, and that the data directory no longer has: %s cannot be restored whole",
			registry.Count(len(checked.Damaged), "copy", "copies"), strings.Join(affected, ", ")),
		"look at the disk of the backup; the snapshot that was just made is whole")
}

// inSnapshot says what is in a snapshot.
func inSnapshot(s backup.Snapshot) string {
	return fmt.Sprintf("%s, %s, %s with %s, %s", registry.Count(s.Heads, "head"), registry.Count(s.Events, "event"),
		registry.Count(s.Blobs, "blob"), ui.Size(s.Bytes), registry.Count(len(s.Files), "file"))
}

// hasOwnCatalog refuses what works on a catalog in a file where it is elsewhere.
func (a *app) hasOwnCatalog(verb string) error {
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid, "%s works on a data directory, not on --registry %s: run it on the machine that has the directory, also while it is served", verb, a.Registry)
	}
	id, err := a.at().Dir().CatalogID()
	if err != nil || a.database == "" && id == "" {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: the catalog of %s is in PostgreSQL, which has tools of its own for that", verb, a.Data),
		"pg_dump and pg_restore, then the content: docs/how-to/operate.md")
}

// inside reports whether path is dir or below it.
func inside(dir, path string) bool {
	from, err1 := filepath.Abs(dir)
	to, err2 := filepath.Abs(path)
	rel, err := filepath.Rel(from, to)
	return errors.Join(err1, err2, err) == nil && (rel == "." || filepath.IsLocal(rel))
}

// operatorFiles are what the operator wrote into the data directory. What may be a secret is
// left out: a file of another kind than [backup.OperatorFiles], or that holds a private key.
func operatorFiles(dir string) (files []string, err error) {
	for _, pattern := range backup.OperatorFiles() {
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
		Dir: dir, Blobs: blob.NewDir(dir), Progress: a.ui.Bytes(verb),
		Open: func(ctx context.Context, path string) (backup.Catalog, error) { return sqlite.Open(ctx, path) },
	}
}
