package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Remove deletes the installs of a toolchain that were made from the embedded lock file, or
// from any lock file. Of an install of the host, it deletes the registration and nothing of the host. It returns what it
// deleted. Errors: CodeNotFound for an unknown name, or if there is nothing to delete; CodeInvalid for a toolchain
// that only shares an install; CodeConflict for an install that a job uses.
func (i *Installer) Remove(ctx context.Context, name string, allVersions bool) ([]Found, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return nil, err
	}
	records, err := installed.Records(i.folder(), name)
	if err != nil {
		return nil, err
	}
	var removed []Found
	for _, r := range records {
		if !allVersions && r.Host == nil && r.Lock != source.LockDigest() {
			continue
		}
		f, err := found(r, source)
		if err != nil {
			return removed, err
		}
		if err := i.remove(ctx, r); err != nil {
			return removed, err
		}
		removed = append(removed, f)
	}
	switch {
	case len(removed) > 0:
		return removed, nil
	case len(records) > 0:
		return nil, registry.WithHint(registry.Errorf(registry.CodeNotFound,
			"%s: only other versions are installed", name), "remove them with --all-versions")
	}
	if source.Shares != "" {
		return nil, registry.Errorf(registry.CodeInvalid, "%s has no install of its own: it shares that of %s", name, source.Shares)
	}
	return nil, registry.Errorf(registry.CodeNotFound, "%s is not installed", name)
}

// remove deletes the record first, so that an interrupted deletion leaves an incomplete
// install.
func (i *Installer) remove(ctx context.Context, r Record) error {
	dir := r.Folder()
	busy := registry.Errorf(registry.CodeConflict, "a job uses the install %s: try again when it has ended", dir)
	unlock, err := toolchain.TryLockFile(dir+lockSuffix, true)
	if errors.Is(err, toolchain.ErrLocked) {
		return busy
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(filepath.Join(dir, installed.RecordFile)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), ctx.Err())
}

// Hold protects an install from being removed until release is called. Errors: CodeUnavailable
// if it was removed.
func Hold(ctx context.Context, r Record) (release func(), err error) {
	if r.Known {
		return nil, notInstalled(r.Name)
	}
	if r.Adopted {
		return func() {}, nil
	}
	unlock, err := toolchain.LockFile(ctx, r.Dir+lockSuffix, false, nil)
	if errors.Is(err, os.ErrPermission) {
		return func() {}, nil // it belongs to another user, so our lock would not protect it
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(r.Dir, installed.RecordFile)); err != nil {
		unlock()
		return nil, registry.Errorf(registry.CodeUnavailable, "the install %s was removed: %w", r.Dir, err)
	}
	return unlock, nil
}
