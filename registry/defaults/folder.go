package defaults

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Folder is a source of the documents in a folder, each in NAME.json. It reads the files anew
// each time. A missing folder counts as empty. Read parses a file. An invalid file is logged
// for the operator; callers do not see why.
type Folder[T any] struct {
	Dir  string
	Read func(path string) (T, error)
}

// Get reads a file. It says to the [storage.Instant] of ctx that what it read is not of the catalog.
func (f Folder[T]) Get(ctx context.Context, name string) (T, error) {
	var none T
	storage.InstantOf(ctx).Leave()
	if err := registry.ValidateName(name); err != nil {
		return none, err
	}
	if strings.ContainsRune(name, '/') {
		return none, registry.Errorf(registry.CodeNotFound, "unknown name %s", name)
	}
	document, err := f.Read(filepath.Join(f.Dir, name+".json"))
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return none, registry.Errorf(registry.CodeNotFound, "unknown name %s", name)
	case err != nil:
		return none, registry.Errorf(registry.CodeInternal, "%s: %w", name, err)
	}
	return document, nil
}

// List reads the files of a page.
func (f Folder[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, registry.Errorf(registry.CodeInternal, "documents: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, isDocument := strings.CutSuffix(e.Name(), ".json")
		if isDocument && name > after && registry.ValidateName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names) // file names are sorted with their suffix
	var page []registry.Named[T]
	for _, name := range names[:min(limit, len(names))] {
		document, err := f.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		page = append(page, registry.Named[T]{Name: name, Document: document})
	}
	return page, nil
}
