package gc

import (
	"context"
	"io"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Garbage records bytes that no repository holds and their removals, and what bytes can be composed of.
type Garbage interface {
	storage.MarkStore
	storage.Removals
	storage.Recipes
}

// SafeStore makes writes safe while collectors run, also in other processes and with any
// pauses. Before it stores bytes, it waits for a running removal of them: the store would
// otherwise take bytes that are about to be deleted as stored. After a repository holds the
// bytes, no new removal can begin, and SafeStore checks that they still exist. Only then it
// acknowledges the write.
type SafeStore struct {
	Garbage Garbage
	Remover storage.Remover // of the wrapped blobs
}

// Blobs wraps blobs for writing.
func (s SafeStore) Blobs(blobs storage.Blobs) storage.Blobs {
	safe := safeBlobs{blobs, s}
	if there, ok := blobs.(redirector); ok {
		return redirecting{safe, there}
	}
	return safe
}

// Uploads wraps uploads for writing.
func (s SafeStore) Uploads(uploads storage.Uploads) storage.Uploads {
	return safeUploads{uploads, s}
}

// Refs wraps refs, with bytes in blobs, for writing.
func (s SafeStore) Refs(refs storage.RepositoryRecords, blobs storage.Blobs) storage.RepositoryRecords {
	return safeRefs{refs, s, blobs}
}

// removalPause is the interval between checks for the end of a removal. Most removals take
// less.
const removalPause = 100 * time.Millisecond

// unmark waits until no removal of d is in progress, and unmarks d.
func (s SafeStore) unmark(ctx context.Context, d registry.Digest) error {
	for {
		removal, err := s.Garbage.Unmark(ctx, d)
		if err != nil || removal.ID == "" {
			return err
		}
		if removal.Left <= 0 {
			if err := s.takeOver(ctx, d, removal.ID); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return registry.Errorf(registry.CodeUnavailable,
				"blob %s: it is being deleted as unreferenced content; try again: %w", d, ctx.Err())
		case <-time.After(min(removal.Left, removalPause)):
		}
	}
}

// takeOver ends a removal whose collector crashed or hangs.
func (s SafeStore) takeOver(ctx context.Context, d registry.Digest, id string) error {
	if err := s.Remover.Await(ctx); err != nil {
		return err
	}
	return s.Garbage.TakeOver(ctx, d, id)
}

// redirector is Blobs with URLs from which clients can pull.
type redirector interface {
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

// redirecting is safeBlobs with the URLs of the wrapped blobs.
type redirecting struct {
	safeBlobs
	redirector
}

type safeBlobs struct {
	storage.Blobs
	safe SafeStore
}

func (b safeBlobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := b.safe.unmark(ctx, d); err != nil {
		return err
	}
	return b.Blobs.Put(ctx, d, size, r)
}

type safeUploads struct {
	storage.Uploads
	safe SafeStore
}

func (u safeUploads) Finish(
	ctx context.Context,
	owner storage.UploadOwner,
	id string,
	d registry.Digest,
) (int64, error) {
	if err := u.safe.unmark(ctx, d); err != nil {
		return 0, err
	}
	return u.Uploads.Finish(ctx, owner, id, d)
}

type safeRefs struct {
	storage.RepositoryRecords
	safe  SafeStore
	blobs storage.Blobs
}

func (r safeRefs) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	if err := r.RepositoryRecords.AddBlob(ctx, repository, d, size); err != nil {
		return err
	}
	return r.verify(ctx, d, size)
}

func (r safeRefs) AddUploaded(
	ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest, size int64,
) (added bool, err error) {
	added, err = r.RepositoryRecords.AddUploaded(ctx, owner, id, d, size)
	if !added || err != nil {
		return false, err
	}
	return true, r.verify(ctx, d, size)
}

func (r safeRefs) PutManifest(ctx context.Context, repository string, m storage.Manifest, tags ...string) error {
	if err := r.RepositoryRecords.PutManifest(ctx, repository, m, tags...); err != nil {
		return err
	}
	return r.verify(ctx, m.Digest, m.Size)
}

// verify checks that the bytes of d, which a repository now holds, exist. They may have been
// deleted before the repository held them, if storing took longer than the grace period. The
// record stays, since another client may have stored the bytes meanwhile. Readers of the record
// get an error while the bytes are missing.
func (r safeRefs) verify(ctx context.Context, d registry.Digest, size int64) error {
	if err := r.safe.unmark(ctx, d); err != nil {
		return err
	}
	blob, have, err := r.blobs.Open(ctx, d)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	if err == nil {
		err = blob.Close()
	}
	if have != size || err != nil {
		return registry.Errorf(registry.CodeUnavailable,
			"blob %s: garbage collection deleted it while it was being stored, because that took too long: send it again", d)
	}
	return nil
}
