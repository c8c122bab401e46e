package service

import (
	"context"
	"io"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Garbage is the bytes that no repository holds, and the removals of them.
type Garbage interface {
	registry.Condemned
	registry.Removals
}

// SafeStore makes storing safe beside collectors, also those of other processes, however
// long any of them stands still. Before it stores bytes, it waits until nobody is removing
// them: a store does not write what it has already, so that bytes which are just about to be
// deleted would be taken for stored. After a repository holds them, when no removal can
// begin any more, it makes sure that they are there. Only then anything is acknowledged.
type SafeStore struct {
	Garbage Garbage
	Remover registry.Remover // of the blobs that are stored
}

// Blobs is blobs to store in.
func (s SafeStore) Blobs(blobs registry.Blobs) registry.Blobs {
	safe := safeBlobs{blobs, s}
	if there, ok := blobs.(redirector); ok {
		return redirecting{safe, there}
	}
	return safe
}

// Uploads is uploads to store by.
func (s SafeStore) Uploads(uploads registry.Uploads) registry.Uploads {
	return safeUploads{uploads, s}
}

// Refs is names to make bytes belong to a repository by, which are in blobs.
func (s SafeStore) Refs(refs registry.Refs, blobs registry.Blobs) registry.Refs {
	return safeRefs{refs, s, blobs}
}

// removalPause is how long it takes until somebody who waits for a removal looks again. Most
// take less.
const removalPause = 100 * time.Millisecond

// rescind waits until no removal of d is under way, and rescinds it.
func (s SafeStore) rescind(ctx context.Context, d registry.Digest) error {
	for {
		removal, err := s.Garbage.Rescind(ctx, d)
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
			return registry.Errorf(registry.CodeUnavailable, "blob %s: it is just being deleted, since nothing needed it; try again: %w", d, ctx.Err())
		case <-time.After(min(removal.Left, removalPause)):
		}
	}
}

// takeOver ends a removal whose collector is gone or stands still.
func (s SafeStore) takeOver(ctx context.Context, d registry.Digest, id string) error {
	if err := s.Remover.Await(ctx); err != nil {
		return err
	}
	return s.Garbage.TakeOver(ctx, d, id)
}

// redirector is blobs that clients can pull from where they are.
type redirector interface {
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

// redirecting is safeBlobs, and says where blobs are.
type redirecting struct {
	safeBlobs
	redirector
}

type safeBlobs struct {
	registry.Blobs
	safe SafeStore
}

func (b safeBlobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := b.safe.rescind(ctx, d); err != nil {
		return err
	}
	return b.Blobs.Put(ctx, d, size, r)
}

type safeUploads struct {
	registry.Uploads
	safe SafeStore
}

func (u safeUploads) Finish(ctx context.Context, owner registry.UploadOwner, id string, d registry.Digest) (int64, error) {
	if err := u.safe.rescind(ctx, d); err != nil {
		return 0, err
	}
	return u.Uploads.Finish(ctx, owner, id, d)
}

type safeRefs struct {
	registry.Refs
	safe  SafeStore
	blobs registry.Blobs
}

func (r safeRefs) AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error {
	if err := r.Refs.AddBlob(ctx, repository, d, size); err != nil {
		return err
	}
	return r.verify(ctx, d, size)
}

func (r safeRefs) PutManifest(ctx context.Context, repository string, m registry.Manifest, tags ...string) error {
	if err := r.Refs.PutManifest(ctx, repository, m, tags...); err != nil {
		return err
	}
	return r.verify(ctx, m.Digest, m.Size)
}

// verify wants the bytes of d, which a repository holds by now, to be there. They may have
// been deleted before that, where whoever stored them took longer than a collector waits.
// The record stays, since others may have stored them meanwhile; who asks for what it names
// hears that the bytes are not there.
func (r safeRefs) verify(ctx context.Context, d registry.Digest, size int64) error {
	if err := r.safe.rescind(ctx, d); err != nil {
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
		return registry.Errorf(registry.CodeUnavailable, "blob %s: it was deleted while it was being stored, which took very long; nothing is lost; send it again", d)
	}
	return nil
}
