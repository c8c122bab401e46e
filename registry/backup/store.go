package backup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Catalog is a copy of a catalog that a backup reads.
type Catalog interface {
	composed.Lookup
	Repositories(ctx context.Context) ([]string, error)
	Records(ctx context.Context, repository string) ([]storage.GCRecord, error)
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	Close() error
}

// Store is a backup. Other processes must not write to its folder meanwhile.
type Store struct {
	Dir   string
	Blobs storage.RepairableBlobs // the blobs in the folder
	// Open opens a copy of a catalog, which it may change. The caller closes it.
	Open func(ctx context.Context, path string) (Catalog, error)
	// Progress is called with the number of bytes done; it may be nil.
	Progress func(done, total int64)
}

// Snapshot is one copy of a data directory, as snapshot.json describes it.
type Snapshot struct {
	Format  string                `json:"format"` // [Format]
	Name    string                `json:"name"`   // its folder
	Created time.Time             `json:"created"`
	Tool    evidence.ToolIdentity `json:"tool"`
	Heads   int                   `json:"heads"`
	Events  int64                 `json:"events"`         // events of the history
	Last    registry.Digest       `json:"last,omitempty"` // hash of the last of them
	Blobs   int                   `json:"blobs"`
	Bytes   int64                 `json:"bytes"` // of the blobs
	Files   []File                `json:"files"` // all other files, by path
}

// Format identifies the format of snapshot.json.
const Format = "https://mlpromote.dev/backup/v1"

// List lists the complete snapshots, oldest first. The list is empty for a folder that is not a
// backup. Errors: CodeTrust for a snapshot with an invalid snapshot.json.
func (s *Store) List() ([]Snapshot, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var all []Snapshot
	for _, name := range names {
		snapshot, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, snapshot)
	}
	return all, nil
}

// Find returns a snapshot; an empty name means the newest. Errors: CodeNotFound.
func (s *Store) Find(name string) (Snapshot, error) {
	all, err := s.List()
	if err != nil {
		return Snapshot{}, err
	}
	if name == "" && len(all) > 0 {
		return all[len(all)-1], nil
	}
	if i := slices.IndexFunc(all, func(one Snapshot) bool { return one.Name == name }); i >= 0 {
		return all[i], nil
	}
	if name == "" {
		return Snapshot{}, registry.Errorf(registry.CodeNotFound,
			"%s has no complete snapshot: it is not a backup, or the backup did not finish", s.Dir)
	}
	return Snapshot{}, registry.Errorf(registry.CodeNotFound, "%s has no complete snapshot %s", s.Dir, name)
}

// names lists the folders of snapshots, oldest first, including incomplete ones.
func (s *Store) names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, snapshotsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if _, err := time.Parse(nameLayout, e.Name()); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func (s *Store) path(name string, file ...string) string {
	return filepath.Join(append([]string{s.Dir, snapshotsFolder, name}, file...)...)
}

func (s *Store) read(name string) (Snapshot, error) {
	path := s.path(name, snapshotFile)
	f, err := openRegular(path)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDocument))
	if err != nil {
		return Snapshot{}, err
	}
	var snapshot Snapshot
	if err := json.Unmarshal(text, &snapshot); err != nil {
		return Snapshot{}, registry.Errorf(registry.CodeTrust, "%s is not a valid snapshot description: %w", path, err)
	}
	switch {
	case snapshot.Format != Format:
		return Snapshot{}, registry.Errorf(registry.CodeTrust,
			"%s has format %q but this program reads %s: use the version that wrote it", path, snapshot.Format, Format)
	case snapshot.Name != name:
		return Snapshot{}, registry.Errorf(registry.CodeTrust,
			"%s describes snapshot %q: its folder was renamed", path, snapshot.Name)
	}
	return snapshot, checkFiles(path, snapshot.Files)
}

// Source is the data directory to back up. Other processes may use it meanwhile.
type Source struct {
	// CopyCatalog writes the catalog as of one instant into a new file.
	CopyCatalog func(ctx context.Context, path string) error
	Blobs       storage.Blobs // as they are stored
	Dir         string        // of the files
	Files       []string      // paths in Dir, with slashes; none is named files
	Tool        evidence.ToolIdentity
	Now         storage.Clock
	// Verify checks every copy of earlier snapshots. If it is false, each run checks a tenth.
	Verify bool
}
