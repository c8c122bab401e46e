package datadir

import (
	"context"
	"io"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Guard allows changes of content only while the catalog owns it. It caches the result of the
// ownership check, so that not every write repeats it.
type Guard struct {
	owner storage.ContentOwner // nil: nothing may be changed
	every time.Duration

	mu      sync.Mutex
	checked time.Time // when the owner last confirmed it
}

// NewGuard returns a guard that caches the ownership check for every; 0 checks each time. With
// a nil owner, it refuses every change.
func NewGuard(owner storage.ContentOwner, every time.Duration) *Guard {
	return &Guard{owner: owner, every: every}
}

// check returns an error unless content may be changed.
func (g *Guard) check(ctx context.Context) error {
	if g.owner == nil {
		return registry.Errorf(registry.CodeUnavailable, "this content is open for reading only")
	}
	g.mu.Lock()
	fresh := !g.checked.IsZero() && time.Since(g.checked) < g.every
	g.mu.Unlock()
	if fresh {
		return nil
	}
	asked := time.Now()
	if _, err := g.owner.OwnsContent(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checked = asked
	return nil
}

// Blobs guards the changes of blobs.
func (g *Guard) Blobs(blobs storage.Blobs) storage.Blobs {
	guarded := guardedBlobs{blobs, g}
	if direct, ok := blobs.(redirector); ok {
		return redirecting{guarded, direct}
	}
	return guarded
}

// redirector is implemented by blobs that clients can pull directly from storage.
type redirector interface {
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

type redirecting struct {
	guardedBlobs
	redirector
}

type guardedBlobs struct {
	storage.Blobs
	guard *Guard
}

func (g guardedBlobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := g.guard.check(ctx); err != nil {
		return err
	}
	return g.Blobs.Put(ctx, d, size, r)
}

func (g guardedBlobs) Delete(ctx context.Context, d registry.Digest) error {
	if err := g.guard.check(ctx); err != nil {
		return err
	}
	return g.Blobs.Delete(ctx, d)
}

// Repairable guards the changes of blobs, including replacements.
func (g *Guard) Repairable(blobs storage.RepairableBlobs) storage.RepairableBlobs {
	return guardedRepairs{guardedBlobs{blobs, g}, blobs}
}

type guardedRepairs struct {
	guardedBlobs
	repairs storage.RepairableBlobs
}

func (g guardedRepairs) Replace(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if err := g.guard.check(ctx); err != nil {
		return err
	}
	return g.repairs.Replace(ctx, d, size, r)
}

// Remover guards permits to delete.
func (g *Guard) Remover(remover storage.Remover) storage.Remover { return guardedRemover{remover, g} }

type guardedRemover struct {
	storage.Remover
	guard *Guard
}

func (g guardedRemover) Permit(ctx context.Context) (storage.Permit, error) {
	if err := g.guard.check(ctx); err != nil {
		return nil, err
	}
	return g.Remover.Permit(ctx)
}

// Uploads is uploads with leftovers that can be collected.
type Uploads interface {
	storage.Uploads
	Sweep(ctx context.Context) (int, error)
}

// Uploads guards uploads.
func (g *Guard) Uploads(uploads Uploads) Uploads { return guardedUploads{uploads, g} }

type guardedUploads struct {
	Uploads
	guard *Guard
}

func (g guardedUploads) Begin(ctx context.Context, owner storage.UploadOwner) (string, error) {
	if err := g.guard.check(ctx); err != nil {
		return "", err
	}
	return g.Uploads.Begin(ctx, owner)
}

func (g guardedUploads) Append(
	ctx context.Context,
	owner storage.UploadOwner,
	id string,
	offset int64,
	r io.Reader,
) (int64, error) {
	if err := g.guard.check(ctx); err != nil {
		return offset, err
	}
	return g.Uploads.Append(ctx, owner, id, offset, r)
}

func (g guardedUploads) Finish(
	ctx context.Context,
	owner storage.UploadOwner,
	id string,
	d registry.Digest,
) (int64, error) {
	if err := g.guard.check(ctx); err != nil {
		return 0, err
	}
	return g.Uploads.Finish(ctx, owner, id, d)
}

func (g guardedUploads) Cancel(ctx context.Context, owner storage.UploadOwner, id string) error {
	if err := g.guard.check(ctx); err != nil {
		return err
	}
	return g.Uploads.Cancel(ctx, owner, id)
}

func (g guardedUploads) Sweep(ctx context.Context) (int, error) {
	if err := g.guard.check(ctx); err != nil {
		return 0, err
	}
	return g.Uploads.Sweep(ctx)
}
