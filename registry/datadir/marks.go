package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.ContentMarks = Dir{}

// ContentMark reads the file that names the owner of the content. Its tag is its text.
func (d Dir) ContentMark(ctx context.Context) (*storage.ContentMark, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(d.file(storage.ContentMarkName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	var m storage.ContentMark
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", registry.Errorf(registry.CodeInvalid,
			"%s cannot be read, so the owner of the content is unknown: %w", d.file(storage.ContentMarkName), err)
	}
	return &m, string(text), nil
}

// SetContentMark writes a file with another name and renames it in one step.
func (d Dir) SetContentMark(ctx context.Context, m storage.ContentMark, tag string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if tag == "" {
		err := d.create(storage.ContentMarkName, append(text, '\n'))
		if errors.Is(err, fs.ErrExist) {
			return d.markConflict()
		}
		return err
	}
	return d.withMark(ctx, tag, func(path string) error {
		return d.replace(storage.ContentMarkName, append(text, '\n'))
	})
}

// DeleteContentMark deletes the file.
func (d Dir) DeleteContentMark(ctx context.Context, tag string) error {
	return d.withMark(ctx, tag, os.Remove)
}

// Overlaps returns no places: data directories do not overlap.
func (Dir) Overlaps(context.Context) ([]string, error) { return nil, nil }

// withMark calls change if the mark has a tag. No other process changes the mark meanwhile:
// each locks the file that it replaces.
func (d Dir) withMark(ctx context.Context, tag string, change func(path string) error) error {
	path := d.file(storage.ContentMarkName)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d.markConflict()
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // held for as long as a rename takes
		return err
	}
	_, have, err := d.ContentMark(ctx)
	if err != nil {
		return err
	}
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(path)
	if err != nil || have != tag || !os.SameFile(locked, now) {
		return d.markConflict()
	}
	return change(path)
}

func (d Dir) markConflict() error {
	return registry.Errorf(registry.CodeConflict,
		"another process changed %s meanwhile; try again", filepath.Join(d.Path, storage.ContentMarkName))
}
