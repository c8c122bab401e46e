package snapshots

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// Backup adds a snapshot of the data directory to dest and deletes all but the newest keep snapshots there; 0
// keeps all. verify reads all copies again, not a tenth of them.
func (j Job) Backup(ctx context.Context, dest string, keep int, verify bool) (saved Saved, err error) {
	if err := j.hasOwnCatalog("backup"); err != nil {
		return Saved{}, err
	}
	if _, err := os.Stat(j.At.Data); errors.Is(err, fs.ErrNotExist) {
		return Saved{}, wiring.NoData(j.At.Data)
	}
	if inside(j.At.Data, dest) {
		return Saved{}, registry.Errorf(registry.CodeInvalid,
			"%s is in the data directory %s, with which it would be lost: want another place, on another disk", dest, j.At.Data)
	}
	content, err := j.At.OpenContent(ctx)
	if err != nil {
		return Saved{}, err
	}
	files, err := operatorFiles(j.At.Data)
	if err != nil {
		return Saved{}, err
	}
	if err := os.MkdirAll(dest, 0o700); err != nil {
		return Saved{}, err
	}
	_, unlock, err := datadir.Dir{Path: dest}.LockExclusive(ctx, nil)
	if err != nil {
		return Saved{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	store := j.backupStore(dest, "copy")
	snapshot, checked, err := store.Make(ctx, backup.Source{
		CopyCatalog: func(ctx context.Context, path string) error {
			return sqlite.Snapshot(ctx, filepath.Join(j.At.Data, datadir.DatabaseFile), path)
		},
		Blobs: content.Blobs, Dir: j.At.Data, Files: files, Tool: j.At.Tool(), Now: clock.Now, Verify: verify,
	})
	if err != nil {
		return Saved{}, err
	}
	var pruned backup.Pruned
	if keep > 0 {
		if pruned, err = store.Prune(ctx, keep); err != nil {
			return Saved{}, err
		}
	}
	return Saved{Snapshot: snapshot, Pruned: pruned, Checked: checked, damaged: damagedCopies(store, checked)}, nil
}

// Saved is a snapshot, and what became of earlier ones.
type Saved struct {
	backup.Snapshot
	Pruned  backup.Pruned  `json:"pruned"`
	Checked backup.Recheck `json:"checked"`
	damaged error
}

// Damaged is an error if copies that only earlier snapshots name are damaged, and the source has no good ones.
// The snapshot itself is whole.
func (s Saved) Damaged() error { return s.damaged }

// damagedCopies returns an error if a copy is damaged and the source is damaged too. The snapshot
// that was just made does not need them.
func damagedCopies(store *backup.Store, checked backup.Recheck) error {
	affected, err := store.Affected(checked.Damaged)
	if err != nil || len(affected) == 0 {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeDigest,
			"damaged: %s that only earlier snapshots name, and that the data directory no longer has: %s cannot be restored whole",
			registry.Count(len(checked.Damaged), "copy", "copies"), strings.Join(affected, ", ")),
		"look at the disk of the backup; the snapshot that was just made is whole")
}

// hasOwnCatalog refuses what works on a catalog in a file where it is elsewhere.
func (j Job) hasOwnCatalog(verb string) error {
	if j.At.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"%s works on a data directory, not on --registry %s: run it on the machine that has the directory, also while it is served", verb, j.At.Registry)
	}
	id, err := j.At.Dir().CatalogID()
	if err != nil || j.At.Database == "" && id == "" {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: the catalog of %s is in PostgreSQL, which has tools of its own for that", verb, j.At.Data),
		"pg_dump and pg_restore, then the content: docs/how-to/backup.md")
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

func (j Job) backupStore(dir, verb string) *backup.Store {
	return &backup.Store{
		Dir: dir, Blobs: blob.NewDir(dir), Progress: j.UI.Bytes(verb),
		Open: func(ctx context.Context, path string) (backup.Catalog, error) { return sqlite.Open(ctx, path) },
	}
}
