package toolchain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Kept is a step in a store.
type Kept struct {
	Key    registry.Digest `json:"key"`
	Verb   Verb            `json:"verb"`
	Tool   string          `json:"tool"`
	Size   int64           `json:"size"` // bytes of its files; steps may share some
	Used   time.Time       `json:"used"` // last
	Origin Origin          `json:"origin,omitzero"`

	objects []registry.Digest
}

// List returns all steps of the store, the most recently used first.
func (s *Store) List(ctx context.Context) ([]Kept, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "steps", "*", "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		record, err := s.record(registry.Digest("sha256:" + strings.TrimSuffix(filepath.Base(path), ".json")))
		if registry.HasCode(err, registry.CodeNotFound) || registry.HasCode(err, registry.CodeInvalid) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kept := Kept{Key: record.Key, Verb: record.Verb, Tool: record.Tool, Used: info.ModTime().UTC(), Origin: record.Origin}
		for _, f := range record.Files {
			kept.Size += f.Size
			kept.objects = append(kept.objects, f.Digest)
		}
		all = append(all, kept)
	}
	slices.SortFunc(all, func(a, b Kept) int {
		if c := b.Used.Compare(a.Used); c != 0 {
			return c
		}
		return strings.Compare(string(a.Key), string(b.Key))
	})
	return all, nil
}

// Prune removes the least recently used steps until the files of the others have at most
// maxBytes, and files that no step needs. It excludes concurrent reads and writes of the store,
// so that no file in use disappears. It returns the removed steps and the bytes of the
// remaining ones.
func (s *Store) Prune(ctx context.Context, maxBytes int64) (removed []Kept, left int64, err error) {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	unlock, err := LockFile(ctx, s.lockPath(), true, nil)
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	all, err := s.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	needed := make(map[registry.Digest]bool)
	full := false
	for _, k := range all {
		size, err := s.more(k, needed)
		if err != nil {
			return nil, 0, err
		}
		if full = full || left+size > maxBytes; full {
			if err := remove(s.stepPath(k.Key)); err != nil {
				return removed, left, err
			}
			removed = append(removed, k)
			continue
		}
		left += size
		for _, d := range k.objects {
			needed[d] = true
		}
	}
	return removed, left, s.sweep(needed)
}

// more returns the size of the files of a step that no other remaining step needs.
func (s *Store) more(k Kept, needed map[registry.Digest]bool) (size int64, err error) {
	seen := make(map[registry.Digest]bool)
	for _, d := range k.objects {
		if needed[d] || seen[d] {
			continue
		}
		seen[d] = true
		info, err := os.Stat(s.objectPath(d))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err == nil {
			size += info.Size()
		}
	}
	return size, nil
}

// sweep removes unneeded objects, and files that crashes left.
func (s *Store) sweep(needed map[registry.Digest]bool) error {
	for _, pattern := range []string{"objects/*/*", "steps/*/.*tmp-*"} {
		paths, err := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if needed[registry.Digest("sha256:"+filepath.Base(path))] {
				continue
			}
			if err := remove(path); err != nil {
				return err
			}
		}
	}
	return s.sweepLocks()
}

// sweepLocks removes the lock files of steps that are not in progress. A process that is just
// about to take such a lock may do a step at the same time as another process, which wastes
// work but does no harm.
func (s *Store) sweepLocks() error {
	paths, err := filepath.Glob(filepath.Join(s.dir, "locks", "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		unlock, err := TryLockFile(path, true)
		if errors.Is(err, ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = remove(path)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
