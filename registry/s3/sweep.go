package s3

import (
	"context"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
)

// LeftoverAge is how long an upload must have been left alone before [Uploads.Sweep]
// takes its writer for dead.
const LeftoverAge = 24 * time.Hour

// Sweep ends the uploads that were left alone for more than [LeftoverAge] before now,
// and removes what killed writers left in the store for as long. It returns how many
// leftovers there were. Running it beside writers, in any number of processes, is safe.
func (u *Uploads) Sweep(ctx context.Context, now time.Time) (int, error) {
	before := now.Add(-LeftoverAge)
	alive, swept, err := u.sweepStates(ctx, before)
	if err != nil {
		return swept, err
	}
	for _, sweep := range []func(context.Context, time.Time, map[string]bool) (int, error){u.b.sweepObjects, u.b.sweepMultiparts} {
		n, err := sweep(ctx, before, alive)
		swept += n
		if err != nil {
			return swept, err
		}
	}
	return swept, nil
}

// sweepStates ends stale uploads. It gives the identifiers of the others.
func (u *Uploads) sweepStates(ctx context.Context, before time.Time) (alive map[string]bool, swept int, err error) {
	alive = make(map[string]bool)
	for state, err := range u.states.StaleUploads(ctx, before.Add(2*LeftoverAge)) { // all, whatever the clocks
		if err != nil {
			return nil, swept, err
		}
		if !state.Touched.Before(before) {
			alive[state.ID] = true
			continue
		}
		err := u.states.EndUpload(ctx, state.ID, state.Version)
		switch {
		case registry.HasCode(err, registry.CodeConflict):
			alive[state.ID] = true // somebody went on with it
		case err == nil:
			swept++
		case !registry.HasCode(err, registry.CodeNotFound):
			return nil, swept, err
		}
	}
	return alive, swept, nil
}

// sweepObjects removes old objects under staging/ of uploads that are over.
func (b *Bucket) sweepObjects(ctx context.Context, before time.Time, alive map[string]bool) (int, error) {
	swept := 0
	for info, err := range b.list(ctx, b.under("staging")) {
		if err != nil {
			return swept, err
		}
		if alive[b.uploadOf(info.Key)] || !info.LastModified.Before(before) {
			continue
		}
		if err := b.remove(ctx, info.Key); err != nil {
			return swept, b.interpretError("sweep", info.Key, err)
		}
		swept++
	}
	return swept, nil
}

// sweepMultiparts aborts old multipart uploads, of uploads that are over and of Puts.
func (b *Bucket) sweepMultiparts(ctx context.Context, before time.Time, alive map[string]bool) (int, error) {
	swept := 0
	for _, folder := range []string{"staging", "blobs"} {
		prefix, key, id := b.under(folder), "", ""
		for more := true; more; {
			page, err := b.core.ListMultipartUploads(ctx, b.name, prefix, key, id, "", 0)
			if err != nil {
				return swept, b.interpretError("list unfinished uploads under", prefix, err)
			}
			for _, found := range page.Uploads {
				if alive[b.uploadOf(found.Key)] || !found.Initiated.Before(before) {
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

// uploadOf is the upload that a key under staging/ belongs to.
func (b *Bucket) uploadOf(key string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, b.under("staging")), "/")
	return id
}
