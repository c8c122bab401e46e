package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Verify checks that a snapshot can be restored, but does not restore it. It checks every file,
// the hash chain of the history, that catalog and list name the same content, and the digest of
// every blob. scratch is a folder for a copy of the catalog. Errors: CodeDigest, CodeTrust.
func (s *Store) Verify(ctx context.Context, snapshot Snapshot, scratch string) error {
	for _, f := range snapshot.Files {
		name := filepath.FromSlash(f.Path)
		if err := checked(s.path(snapshot.Name, name), filepath.Join(scratch, name), f); err != nil {
			return err
		}
	}
	inside, err := s.compare(ctx, snapshot, filepath.Join(scratch, catalogFile), filepath.Join(scratch, contentFile))
	if err != nil {
		return err
	}
	check := func(d registry.Digest, size int64) error { return checkBlob(ctx, s.Blobs, d, size) }
	return s.each(ctx, inside, filepath.Join(scratch, catalogFile), check)
}

// Target is the destination of a restore: a directory without a catalog.
type Target struct {
	Dir string
	// OpenBlobs opens the destination of the content, after the catalog file was checked. It may
	// change the identity of that catalog.
	OpenBlobs func(ctx context.Context, catalog string) (storage.RepairableBlobs, error)
	// TakeCatalog stores the catalog elsewhere, from its file. Restore calls it last, and again if
	// a restore was interrupted after it. If it is nil, the catalog stays in Dir.
	TakeCatalog func(ctx context.Context, path string) error
}

// Restore restores a snapshot into a directory. It writes the content first and the catalog,
// which names the content, last. It verifies content of an earlier attempt again. Errors: as
// Verify.
func (s *Store) Restore(ctx context.Context, snapshot Snapshot, to Target) error {
	catalog, list := filepath.Join(to.Dir, catalogFile+".restoring"), filepath.Join(to.Dir, contentFile+".restoring")
	for _, f := range snapshot.Files {
		place := filepath.Join(to.Dir, filepath.FromSlash(strings.TrimPrefix(f.Path, filesFolder+"/")))
		switch f.Path {
		case catalogFile:
			place = catalog
		case contentFile:
			place = list
		}
		if err := checked(s.path(snapshot.Name, filepath.FromSlash(f.Path)), place, f); err != nil {
			return err
		}
	}
	inside, err := s.compare(ctx, snapshot, catalog, list)
	if err != nil {
		return err
	}
	blobs, err := to.OpenBlobs(ctx, catalog)
	if err != nil {
		return err
	}
	err = s.each(ctx, inside, catalog, func(d registry.Digest, size int64) error { return s.give(ctx, blobs, d, size) })
	if err != nil {
		return err
	}
	if to.TakeCatalog == nil {
		return errors.Join(os.Remove(list), os.Rename(catalog, filepath.Join(to.Dir, catalogFile)), atomicfile.SyncDir(to.Dir))
	}
	if err := to.TakeCatalog(ctx, catalog); err != nil {
		return err
	}
	return errors.Join(os.Remove(list), os.Remove(catalog), atomicfile.SyncDir(to.Dir))
}

// compare checks a copy of the catalog against the snapshot's description.
func (s *Store) compare(ctx context.Context, want Snapshot, catalog, list string) (content, error) {
	var found Snapshot
	named, err := s.survey(ctx, catalog, &found)
	if err != nil {
		return nil, err
	}
	listed, err := readContent(list)
	if err != nil {
		return nil, err
	}
	if found.Events != want.Events || found.Last != want.Last || found.Heads != want.Heads ||
		string(named.text()) != string(listed.text()) {
		return nil, registry.Errorf(registry.CodeTrust,
			"snapshot %s: its catalog has %d heads, %d events and %d blobs, but snapshot.json says %d, %d and %d, or names "+
				"others: the backup was changed",
			want.Name, found.Heads, found.Events, found.Blobs, want.Heads, want.Events, want.Blobs)
	}
	return listed, nil
}

// maxNamed limits the damaged blobs that an error lists.
const maxNamed = 10

// each calls do for all blobs, even after a damaged or missing one. Its error lists those with
// the repositories that hold them.
func (s *Store) each(ctx context.Context, inside content, catalog string, do func(registry.Digest, int64) error) error {
	wrong := make(map[registry.Digest]error)
	var done int64
	total := inside.bytes()
	for _, d := range inside.digests() {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := do(d, inside[d]); {
		case registry.HasCode(err, registry.CodeDigest):
			wrong[d] = err
		case err != nil:
			return err
		}
		done += inside[d]
		s.progress(done, total)
	}
	if len(wrong) == 0 {
		return nil
	}
	holders, err := s.holders(ctx, catalog, wrong)
	if err != nil {
		return err
	}
	return damaged(wrong, holders, len(inside))
}

// holders returns the repositories that hold each digest.
func (s *Store) holders(
	ctx context.Context,
	path string,
	of map[registry.Digest]error,
) (holders map[registry.Digest][]string, err error) {
	catalog, err := s.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, catalog.Close()) }()
	repositories, err := catalog.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	holders = make(map[registry.Digest][]string)
	for _, repository := range repositories {
		held, err := catalog.Records(ctx, repository)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			if of[h.Digest] != nil && !slices.Contains(holders[h.Digest], repository) {
				holders[h.Digest] = append(holders[h.Digest], repository)
			}
		}
	}
	return holders, nil
}

// damaged returns the error for a snapshot with damaged or missing blobs.
func damaged(wrong map[registry.Digest]error, holders map[registry.Digest][]string, of int) error {
	digests := slices.Sorted(maps.Keys(wrong))
	var lines []string
	for _, d := range digests[:min(len(digests), maxNamed)] {
		lines = append(lines, fmt.Sprintf("%v; held by %s", wrong[d], strings.Join(holders[d], ", ")))
	}
	if more := len(digests) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeDigest, "%d of %d blobs are damaged or missing in the backup:\n  %s",
			len(digests), of, strings.Join(lines, "\n  ")),
		"mlpromote backup DEST --verify copies them again if the source still has them; otherwise restore another snapshot",
	)
}

// give copies a blob of the backup to its destination. It replaces a damaged one: a DELETE before
// the PUT could be carried out again after it.
func (s *Store) give(ctx context.Context, to storage.RepairableBlobs, d registry.Digest, size int64) error {
	if checkBlob(ctx, to, d, size) == nil {
		return nil
	}
	blob, _, err := s.Blobs.Open(ctx, d)
	if err != nil {
		return absent(d, err)
	}
	err = errors.Join(to.Replace(ctx, d, size, blob), blob.Close())
	if registry.HasCode(err, registry.CodeDigest) {
		return registry.Errorf(registry.CodeDigest, "blob %s of the backup is damaged", d)
	}
	return err
}

func absent(d registry.Digest, err error) error {
	if registry.HasCode(err, registry.CodeNotFound) {
		return registry.Errorf(registry.CodeDigest, "blob %s is missing in the backup", d)
	}
	return err
}

// checkBlob reads a blob and verifies its digest.
func checkBlob(ctx context.Context, blobs storage.Blobs, d registry.Digest, size int64) error {
	blob, n, err := blobs.Open(ctx, d)
	if err != nil {
		return absent(d, err)
	}
	defer blob.Close()
	hash, err := registry.NewHash(d)
	if err != nil {
		return err
	}
	if _, err := copyUntil(ctx, hash, blob); err != nil {
		return err
	}
	if got := digest.NewDigest(d.Algorithm(), hash); got != d || n != size {
		return registry.Errorf(registry.CodeDigest,
			"blob %s of the backup has %d bytes with the digest %s, want %d bytes: it was damaged", d, n, got, size)
	}
	return nil
}
