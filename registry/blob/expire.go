package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Sweep ends uploads that were idle for more than [LeftoverAge], by the clock of the catalog
// and that of the file system, and calls [Dir.Sweep]. It returns how many leftovers it
// removed. It is safe beside writers, in any number of processes.
func (u *Uploads) Sweep(ctx context.Context) (int, error) {
	now, err := u.dir.now(ctx)
	if err != nil {
		return 0, err
	}
	swept := 0
	for state, err := range u.states.StaleUploads(ctx, LeftoverAge) {
		if err != nil {
			return swept, err
		}
		ended, err := u.expire(ctx, state, now)
		if err != nil {
			return swept, err
		}
		if ended {
			swept++
		}
	}
	files, err := u.dir.Sweep(ctx)
	return swept + files, err
}

// expire ends an idle upload whose file is not being written, and reports whether it did.
func (u *Uploads) expire(ctx context.Context, state storage.UploadState, now time.Time) (bool, error) {
	if n, err := readNotes(state); err == nil {
		info, err := os.Lstat(u.path(n.File))
		switch {
		case err == nil && now.Sub(info.ModTime()) <= LeftoverAge:
			return false, nil // a slow sender
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, u.interpretError("sweep", state.ID, err)
		}
	}
	err := u.states.EndUpload(ctx, state.ID, state.Version)
	if registry.HasCode(err, registry.CodeConflict) || registry.HasCode(err, registry.CodeNotFound) {
		return false, nil // another process continued or ended it
	}
	return err == nil, err
}
