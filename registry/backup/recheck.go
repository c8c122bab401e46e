package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// recheckShare is the number of runs after which every copy was checked.
	recheckShare = 10

	// checkedFile has the digest of the copy that was read last. The next run continues there.
	checkedFile = "checked"
)

// Recheck is the result of reading copies that earlier snapshots made.
type Recheck struct {
	Blobs    int               `json:"blobs"` // number of copies read
	Bytes    int64             `json:"bytes"`
	Repaired []registry.Digest `json:"repaired,omitempty"` // damaged copies that were replaced
	Damaged  []registry.Digest `json:"damaged,omitempty"`  // damaged in the backup, and damaged or missing in the source
}

// recheck reads some of the copies and replaces damaged ones, from blobs.
func (s *Store) recheck(ctx context.Context, from Source, blobs storage.Blobs) (Recheck, error) {
	all, err := s.copies(ctx)
	if err != nil || len(all) == 0 {
		return Recheck{}, err
	}
	last, err := os.ReadFile(filepath.Join(s.Dir, checkedFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Recheck{}, err
	}
	budget := (all.bytes() + recheckShare - 1) / recheckShare
	var did Recheck
	for _, d := range startAfter(all.digests(), registry.Digest(strings.TrimSpace(string(last)))) {
		if !from.Verify && did.Bytes >= budget && did.Blobs > 0 {
			break
		}
		if err := s.recheckOne(ctx, blobs, d, &did); err != nil {
			return did, err
		}
		did.Blobs++
		did.Bytes += all[d]
		last = []byte(d)
	}
	return did, atomicfile.Write(filepath.Join(s.Dir, checkedFile), append(last, '\n'), fileMode)
}

// copies returns the blobs of the backup with their present sizes.
func (s *Store) copies(ctx context.Context) (content, error) {
	all := make(content)
	for d, err := range s.Blobs.Digests(ctx) {
		if err != nil {
			return nil, err
		}
		blob, size, err := s.Blobs.Open(ctx, d)
		if err != nil {
			return nil, err
		}
		if err := blob.Close(); err != nil {
			return nil, err
		}
		all[d] = size
	}
	return all, nil
}

// startAfter rotates a sorted list to begin behind the digest last.
func startAfter(sorted []registry.Digest, last registry.Digest) []registry.Digest {
	n, found := slices.BinarySearch(sorted, last)
	if found {
		n++
	}
	return slices.Concat(sorted[n:], sorted[:n])
}

// recheckOne checks a copy. If it is damaged and the source has the correct blob, recheckOne
// replaces the copy. Otherwise the damaged copy stays.
func (s *Store) recheckOne(ctx context.Context, from storage.Blobs, d registry.Digest, did *Recheck) error {
	_, err := hashBlob(ctx, s.Blobs, d)
	if !registry.HasCode(err, registry.CodeDigest) {
		return err
	}
	size, err := hashBlob(ctx, from, d)
	if registry.HasCode(err, registry.CodeDigest) || registry.HasCode(err, registry.CodeNotFound) {
		did.Damaged = append(did.Damaged, d)
		return nil
	}
	if err != nil {
		return err
	}
	blob, _, err := from.Open(ctx, d)
	if err != nil {
		return err
	}
	did.Repaired = append(did.Repaired, d)
	return errors.Join(s.Blobs.Replace(ctx, d, size, blob), blob.Close())
}

// hashBlob reads a blob and returns its size. Errors: CodeDigest if its bytes do not match its
// digest.
func hashBlob(ctx context.Context, blobs storage.Blobs, d registry.Digest) (int64, error) {
	blob, _, err := blobs.Open(ctx, d)
	if err != nil {
		return 0, err
	}
	defer blob.Close()
	hash, err := registry.NewHash(d)
	if err != nil {
		return 0, err
	}
	size, err := copyUntil(ctx, hash, blob)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	if got := digest.NewDigest(d.Algorithm(), hash); got != d {
		return size, registry.Errorf(registry.CodeDigest, "blob %s is damaged: its %d bytes have the digest %s", d, size, got)
	}
	return size, nil
}

// Affected lists the snapshots that name any of the digests, the oldest first.
func (s *Store) Affected(digests []registry.Digest) ([]string, error) {
	if len(digests) == 0 {
		return nil, nil
	}
	all, err := s.List()
	var names []string
	for _, snapshot := range all {
		inside, err := readContent(s.path(snapshot.Name, contentFile))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(digests, func(d registry.Digest) bool { _, ok := inside[d]; return ok }) {
			names = append(names, snapshot.Name)
		}
	}
	return names, err
}
