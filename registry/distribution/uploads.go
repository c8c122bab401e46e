package distribution

import (
	"context"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// beginUpload starts an upload, unless a mount or a single request with the whole blob makes it
// unnecessary. If the mount is impossible for any reason, it begins an upload, so that it does
// not reveal blobs that the caller may not pull.
func beginUpload(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	query := r.URL.Query()
	wanted := make(map[string]registry.Digest)
	for _, key := range []string{"mount", "digest"} {
		if query.Has(key) {
			d, err := parseDigest(query.Get(key))
			if err != nil {
				return err
			}
			wanted[key] = d
		}
	}
	if d, ok := wanted["mount"]; ok {
		mounted, err := mount(r.Context(), h, at, d, query.Get("from"))
		if err != nil {
			return err
		}
		if mounted {
			created(w, at, d)
			return nil
		}
	}
	if err := mayBegin(r.Context(), h); err != nil {
		return err
	}
	id, err := h.Uploads.Begin(r.Context(), ownerOf(r.Context(), h, at))
	if err != nil {
		return err
	}
	at = request{upload, at.repository, id}
	if d, ok := wanted["digest"]; ok {
		return finishUpload(h, w, r, at, d)
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(0))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// uploadHour is how long after its last write an upload counts against its principal's limit.
// An interrupted upload then no longer counts, even before it is collected.
const uploadHour = time.Hour

// mayBegin refuses an upload to a principal with too many in progress. Concurrent requests may
// exceed the limit by a few.
func mayBegin(ctx context.Context, h *handler) error {
	if h.MaxUploads == 0 {
		return nil
	}
	n, err := h.UploadCounts.CountUploads(ctx, h.Principal(ctx), uploadHour)
	if err != nil || n < h.MaxUploads {
		return err
	}
	return problemf(http.StatusTooManyRequests, codeTooManyRequests,
		"%d uploads are in progress, the maximum per caller: finish some, or DELETE them", n).with("Retry-After", "5")
}

// mount adds a blob of another repository to this one and reports whether it did.
func mount(ctx context.Context, h *handler, at request, d registry.Digest, from string) (bool, error) {
	if !isRepository(from) {
		return false, nil
	}
	if err := h.Authorize(ctx, Access{from, Pull}); err != nil {
		h.Logger.DebugContext(ctx, "mount refused", "from", from, "digest", d, "error", err)
		return false, nil // hide the blob from this caller
	}
	size, err := h.Refs.Blob(ctx, from, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	blob, err := openBlob(ctx, h, d, size)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := blob.Close(); err != nil {
		return false, err
	}
	return true, h.Refs.AddBlob(ctx, at.repository, d, size)
}

// getUpload returns the progress of an upload.
func getUpload(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	n, err := h.Uploads.Offset(r.Context(), ownerOf(r.Context(), h, at), at.last)
	if err != nil {
		return err
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(n))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// patchUpload appends one chunk, or a stream of unknown length.
func patchUpload(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	n, err := receiveChunk(h, r, at)
	if err != nil {
		return err
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(n))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// deleteUpload cancels an upload.
func deleteUpload(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	if err := h.Uploads.Cancel(r.Context(), ownerOf(r.Context(), h, at), at.last); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// putUpload appends the last chunk, if any, and finishes the upload.
func putUpload(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	d, err := parseDigest(r.URL.Query().Get("digest"))
	if err != nil {
		return err // the upload stays; the caller can send the correct digest
	}
	return finishUpload(h, w, r, at, d)
}

// finishUpload appends the body and stores the upload as blob d. Only then it adds the blob to the
// repository, because the caller must prove that it has the bytes of d.
func finishUpload(h *handler, w http.ResponseWriter, r *http.Request, at request, d registry.Digest) error {
	if stored, err := storeWhole(h, r, at, d); err != nil {
		return err
	} else if stored {
		created(w, at, d)
		return nil
	}
	if r.ContentLength != 0 || r.Header.Get("Content-Range") != "" {
		if _, err := receiveChunk(h, r, at); err != nil {
			return err
		}
	}
	ctx := r.Context()
	size, err := h.Uploads.Finish(ctx, ownerOf(ctx, h, at), at.last, d)
	if registry.HasCode(err, registry.CodeConflict) {
		return outOfOrder(ctx, h, at, err)
	}
	if err != nil {
		return err
	}
	if err := h.Refs.AddBlob(ctx, at.repository, d, size); err != nil {
		return err
	}
	created(w, at, d)
	return nil
}
