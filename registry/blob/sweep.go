package blob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Sweep removes files under incoming/ that killed writers left: those last written more than
// [LeftoverAge] ago, by the clock of the file system. It returns how many it removed. It is
// safe beside writers, in any number of processes.
func (dir *Dir) Sweep(ctx context.Context) (int, error) {
	now, err := dir.now(ctx)
	if err != nil || now.IsZero() {
		return 0, err
	}
	folder := filepath.Join(dir.path, incomingFolder)
	files, err := readFolder(ctx, folder)
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, file := range files {
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // its writer finished meanwhile
		}
		if err != nil {
			return removed, registry.Errorf(registry.CodeInternal, "sweep: %w", err)
		}
		if !info.Mode().IsRegular() || now.Sub(info.ModTime()) <= LeftoverAge {
			continue
		}
		if err := os.Remove(filepath.Join(folder, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, registry.Errorf(registry.CodeInternal, "sweep: %w", err)
		}
		removed++
	}
	return removed, nil
}

// now returns the time of the file system, which another machine may provide. It reads the time
// from a file that it creates in incoming/. Without that folder, it returns the zero time.
func (dir *Dir) now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	f, err := os.CreateTemp(filepath.Join(dir.path, incomingFolder), "clock-")
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, dir.interpret("sweep", "incoming", err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return time.Time{}, dir.interpret("sweep", "incoming", err)
	}
	return info.ModTime(), nil
}
