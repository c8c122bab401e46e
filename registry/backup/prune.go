package backup

import (
	"context"
	"os"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// Pruned counts what Prune deleted.
type Pruned struct {
	Snapshots []string `json:"snapshots,omitempty"`
	Blobs     int      `json:"blobs"`
}

// Prune keeps the newest snapshots, at least one, and their content. It deletes a snapshot
// before its content, so that the remaining snapshots are complete at all times.
func (s *Store) Prune(ctx context.Context, keep int) (Pruned, error) {
	var pruned Pruned
	all, err := s.List()
	if err != nil || len(all) <= max(keep, 1) {
		return pruned, err
	}
	kept := all[len(all)-max(keep, 1):]
	needed := make(content)
	for _, snapshot := range kept {
		inside, err := readContent(s.path(snapshot.Name, contentFile))
		if err != nil {
			return pruned, err
		}
		for d, size := range inside {
			needed[d] = size
		}
	}
	for _, snapshot := range all[:len(all)-len(kept)] {
		if err := s.drop(snapshot.Name); err != nil {
			return pruned, err
		}
		pruned.Snapshots = append(pruned.Snapshots, snapshot.Name)
	}
	pruned.Blobs, err = s.dropUnneeded(ctx, needed)
	return pruned, err
}

// drop deletes a snapshot, snapshot.json first.
func (s *Store) drop(name string) error {
	if err := os.Remove(s.path(name, snapshotFile)); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(s.path(name)); err != nil {
		return err
	}
	return os.RemoveAll(s.path(name))
}

func (s *Store) dropUnneeded(ctx context.Context, needed content) (n int, err error) {
	var unneeded []registry.Digest
	for d, err := range s.Blobs.Digests(ctx) {
		if err != nil {
			return 0, err
		}
		if _, ok := needed[d]; !ok {
			unneeded = append(unneeded, d)
		}
	}
	for _, d := range unneeded {
		if err := s.Blobs.Delete(ctx, d); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
