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

// LeftoverAge is how long a file under incoming/ must have been left alone before
// [Dir.Sweep] takes its writer for dead.
const LeftoverAge = 24 * time.Hour

// Sweep removes what killed writers left behind: files under incoming/ that were last
// written more than [LeftoverAge] before now. It returns how many it removed. Running
// it beside writers, in any number of processes, is safe.
func (dir *Dir) Sweep(ctx context.Context, now time.Time) (int, error) {
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
