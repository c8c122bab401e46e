package s3

import (
	"context"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
)

// LeftoverAge is the idle time after which [Uploads.Sweep] deletes an upload.
const LeftoverAge = 24 * time.Hour

// Sweep ends uploads that were idle for more than [LeftoverAge] by the clock of the catalog. It
// then deletes objects that killed writers left in the store, of the same age by the store's
// clock. It returns how many leftovers it deleted. It is safe during writes of any number of
// processes.
func (u *Uploads) Sweep(ctx context.Context) (int, error) {
	alive, swept, err := u.sweepStates(ctx)
	if err != nil {
		return swept, err
	}
	now, err := u.b.time(ctx)
	if err != nil {
		return swept, err
	}
	before := now.Add(-u.b.leftoverAge)
	for _, sweep := range []func(context.Context, time.Time, map[string]bool) (int, error){
		u.b.sweepObjects, u.b.sweepMultiparts,
	} {
		n, err := sweep(ctx, before, alive)
		swept += n
		if err != nil {
			return swept, err
		}
	}
	return swept, nil
}

// sweepStates ends stale uploads and returns the identifiers of the others. Objects of uploads
// that begin later are too young to be swept.
func (u *Uploads) sweepStates(ctx context.Context) (alive map[string]bool, swept int, err error) {
	for state, err := range u.states.StaleUploads(ctx, LeftoverAge) {
		if err != nil {
			return nil, swept, err
		}
		err := u.states.EndUpload(ctx, state.ID, state.Version)
		switch {
		case err == nil:
			swept++
		// With these codes, another request continued or ended the upload.
		case !registry.HasCode(err, registry.CodeConflict) && !registry.HasCode(err, registry.CodeNotFound):
			return nil, swept, err
		}
	}
	alive = make(map[string]bool)
	for state, err := range u.states.StaleUploads(ctx, 0) {
		if err != nil {
			return nil, swept, err
		}
		alive[state.ID] = true
	}
	return alive, swept, nil
}

// sweepObjects deletes old objects of uploads that have ended. It does not touch objects whose
// keys do not have the form of an upload's.
func (b *Bucket) sweepObjects(ctx context.Context, before time.Time, alive map[string]bool) (int, error) {
	swept := 0
	for info, err := range b.list(ctx, b.under(uploadsFolder)) {
		if err != nil {
			return swept, err
		}
		if id, ok := b.uploadOf(info.Key); !ok || alive[id] || !info.LastModified.Before(before) {
			continue
		}
		if err := b.remove(ctx, info.Key); err != nil {
			return swept, b.interpretError("sweep", info.Key, err)
		}
		swept++
	}
	return swept, nil
}

// sweepMultiparts aborts old multipart uploads of ended uploads and of Puts.
func (b *Bucket) sweepMultiparts(ctx context.Context, before time.Time, alive map[string]bool) (int, error) {
	swept := 0
	for _, folder := range []string{uploadsFolder, "blobs"} {
		prefix, key, id := b.under(folder), "", ""
		for more := true; more; {
			page, err := b.core.ListMultipartUploads(ctx, b.name, prefix, key, id, "", 0)
			if err != nil {
				return swept, b.interpretError("list unfinished uploads under", prefix, err)
			}
			for _, found := range page.Uploads {
				if !b.isOver(found.Key, alive) || !found.Initiated.Before(before) {
					continue
				}
				err := b.core.AbortMultipartUpload(ctx, b.name, found.Key, found.UploadID)
				if err != nil && !saidCode(err, minio.NoSuchUpload) {
					return swept, b.interpretError("sweep", found.Key, err)
				}
				swept++
			}
			more, key, id = page.IsTruncated, page.NextKeyMarker, page.NextUploadIDMarker
		}
	}
	return swept, nil
}

// isOver reports whether a multipart upload belongs to an ended upload or to a Put.
func (b *Bucket) isOver(key string, alive map[string]bool) bool {
	if id, ok := b.uploadOf(key); ok {
		return !alive[id]
	}
	_, ok := b.digestOf(key)
	return ok
}
