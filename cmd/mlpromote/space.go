package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"mlpromote.dev/mlpromote/pipeline/run"
)

// space is what is free where builds write: steps in the folder for temporary files, what
// they leave in the cache, and the content of the registry in the data directory.
func (a *app) space(context.Context) (run.Space, error) {
	cache, err := a.tools().Root()
	if err != nil {
		return run.Space{}, err
	}
	places := []string{os.TempDir(), cache}
	if a.Registry == "" && a.storage == "" {
		places = append(places, a.Data)
	}
	var least run.Space
	for i, place := range places {
		free, err := freeIn(place)
		if err != nil {
			return run.Space{}, err
		}
		if i == 0 || free < least.Free {
			least = run.Space{Where: place, Free: free}
		}
	}
	return least, nil
}

// freeIn is what a user may still write to the file system of a folder that may not be
// there yet.
func freeIn(folder string) (int64, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return 0, err
	}
	for {
		var s unix.Statfs_t
		err := unix.Statfs(folder, &s)
		if err == nil {
			return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
		}
		if parent := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && parent != folder {
			folder = parent
			continue
		}
		return 0, err
	}
}
