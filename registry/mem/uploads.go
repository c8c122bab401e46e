package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Uploads is [storage.Uploads] in a map. Make one with [NewUploads].
type Uploads struct {
	blobs *Blobs
	mu    sync.Mutex
	open  map[uploadKey]*upload
}

var _ storage.Uploads = (*Uploads)(nil)

type uploadKey struct {
	owner storage.UploadOwner
	id    string
}

type upload struct {
	content []byte
	busy    bool // an Append is at work
}

// NewUploads is the uploads that end in blobs.
func NewUploads(blobs *Blobs) *Uploads {
	return &Uploads{blobs: blobs, open: make(map[uploadKey]*upload)}
}

// Begin makes an empty upload.
func (u *Uploads) Begin(ctx context.Context, owner storage.UploadOwner) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	id := storage.NewUpload(owner).ID
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[uploadKey{owner, id}] = &upload{}
	return id, nil
}

// Offset returns the number of bytes that arrived.
func (u *Uploads) Offset(ctx context.Context, owner storage.UploadOwner, id string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found, err := u.find(owner, id)
	if err != nil {
		return 0, err
	}
	return int64(len(found.content)), nil
}

// Append keeps what r has.
func (u *Uploads) Append(ctx context.Context, owner storage.UploadOwner, id string, offset int64, r io.Reader) (int64, error) {
	found, err := u.acquire(ctx, owner, id, offset)
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		size := u.grow(found, buffer[:n])
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			continue
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		found.busy = false
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		return size, fmt.Errorf("read what to append to upload %s: %w", id, err)
	}
}

// acquire returns an upload to one Append alone.
func (u *Uploads) acquire(ctx context.Context, owner storage.UploadOwner, id string, offset int64) (*upload, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found, err := u.find(owner, id)
	if err != nil {
		return nil, err
	}
	if have := int64(len(found.content)); found.busy || have != offset {
		return nil, registry.Errorf(registry.CodeConflict,
			"upload %s: %d bytes are here, so the next ones cannot begin at %d, or another request is writing it; send one chunk after the other", id, have, offset)
	}
	found.busy = true
	return found, nil
}

func (u *Uploads) grow(found *upload, p []byte) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	found.content = append(found.content, p...)
	return int64(len(found.content))
}

// Finish makes the upload a blob. Whatever comes of it, the upload is gone.
func (u *Uploads) Finish(ctx context.Context, owner storage.UploadOwner, id string, d registry.Digest) (int64, error) {
	if err := errors.Join(ctx.Err(), validate(d)); err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found, err := u.find(owner, id)
	if err != nil {
		return 0, err
	}
	if found.busy {
		return 0, registry.Errorf(registry.CodeConflict, "upload %s: another request is writing it; finish it after that", id)
	}
	delete(u.open, uploadKey{owner, id})
	size := int64(len(found.content))
	if got := d.Algorithm().FromBytes(found.content); got != d {
		return 0, registry.Errorf(registry.CodeDigest,
			"upload %s: the %d bytes that came have the digest %s and not %s: nothing was stored; send the right content or the right digest",
			id, size, got, d)
	}
	return size, u.blobs.Put(ctx, d, size, bytes.NewReader(found.content))
}

// Cancel ends an upload.
func (u *Uploads) Cancel(ctx context.Context, owner storage.UploadOwner, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found, err := u.find(owner, id)
	if err == nil && found.busy {
		err = registry.Errorf(registry.CodeConflict, "upload %s: another request is writing it; cancel it after that", id)
	}
	if err == nil {
		delete(u.open, uploadKey{owner, id})
	}
	return err
}

func (u *Uploads) find(owner storage.UploadOwner, id string) (*upload, error) {
	found, ok := u.open[uploadKey{owner, id}]
	if !ok {
		return nil, registry.Errorf(registry.CodeNotFound, "upload %s: not found; begin another", id)
	}
	return found, nil
}
