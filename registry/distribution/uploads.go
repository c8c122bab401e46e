package distribution

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// beginUpload starts an upload, or spares the caller one: by a mount, or by taking the
// whole blob at once. A mount that cannot be made begins an upload instead, whatever
// the reason: it must not tell who may not pull what is there.
func (h *handler) beginUpload(w http.ResponseWriter, r *http.Request, at request) error {
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
		mounted, err := h.mount(r.Context(), at, d, query.Get("from"))
		if err != nil {
			return err
		}
		if mounted {
			created(w, at, d)
			return nil
		}
	}
	if err := h.mayBegin(r.Context()); err != nil {
		return err
	}
	id, err := h.Uploads.Begin(r.Context(), h.owner(r.Context(), at))
	if err != nil {
		return err
	}
	at = request{upload, at.repository, id}
	if d, ok := wanted["digest"]; ok {
		return h.finish(w, r, at, d)
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(0))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// uploadHour is how long ago an upload must have been touched to be under way no more, as
// far as its principal's bound goes: one that was broken off does not stand in the way
// until it is collected.
const uploadHour = time.Hour

// mayBegin refuses uploads of who has too many under way. Of several that begin at once a
// few more may.
func (h *handler) mayBegin(ctx context.Context) error {
	if h.MaxUploads == 0 {
		return nil
	}
	n, err := h.UploadCounts.CountUploads(ctx, h.Principal(ctx), uploadHour)
	if err != nil || n < h.MaxUploads {
		return err
	}
	return problemf(http.StatusTooManyRequests, codeTooManyRequests, "%d uploads are under way, as many as anybody may have: finish some, or DELETE them", n).with("Retry-After", "5")
}

// mount makes a blob of another repository belong to this one and reports whether it did.
func (h *handler) mount(ctx context.Context, at request, d registry.Digest, from string) (bool, error) {
	if !isRepository(from) {
		return false, nil
	}
	if err := h.Authorize(ctx, Access{from, Pull}); err != nil {
		h.Logger.DebugContext(ctx, "mount refused", "from", from, "digest", d, "error", err)
		return false, nil // to this caller the blob is not there
	}
	size, err := h.Refs.Blob(ctx, from, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	blob, err := h.open(ctx, d, size)
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

// getUpload says how far an upload has come.
func (h *handler) getUpload(w http.ResponseWriter, r *http.Request, at request) error {
	n, err := h.Uploads.Offset(r.Context(), h.owner(r.Context(), at), at.last)
	if err != nil {
		return err
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(n))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// patchUpload takes one chunk, or a stream of unknown length.
func (h *handler) patchUpload(w http.ResponseWriter, r *http.Request, at request) error {
	n, err := h.receive(r, at)
	if err != nil {
		return err
	}
	w.Header().Set("Location", at.location())
	w.Header().Set("Range", received(n))
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// deleteUpload cancels an upload.
func (h *handler) deleteUpload(w http.ResponseWriter, r *http.Request, at request) error {
	if err := h.Uploads.Cancel(r.Context(), h.owner(r.Context(), at), at.last); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// putUpload takes the last chunk, if there is one, and closes the upload.
func (h *handler) putUpload(w http.ResponseWriter, r *http.Request, at request) error {
	d, err := parseDigest(r.URL.Query().Get("digest"))
	if err != nil {
		return err // the upload stays: the caller may know the digest after all
	}
	return h.finish(w, r, at, d)
}

// finish takes what the body has and makes all that came the blob d. Only then does it
// belong to the repository: who sent other bytes than d's has proven nothing.
func (h *handler) finish(w http.ResponseWriter, r *http.Request, at request, d registry.Digest) error {
	if stored, err := h.storeWhole(r, at, d); err != nil {
		return err
	} else if stored {
		created(w, at, d)
		return nil
	}
	if r.ContentLength != 0 || r.Header.Get("Content-Range") != "" {
		if _, err := h.receive(r, at); err != nil {
			return err
		}
	}
	ctx := r.Context()
	size, err := h.Uploads.Finish(ctx, h.owner(ctx, at), at.last, d)
	if registry.HasCode(err, registry.CodeConflict) {
		return h.outOfOrder(ctx, at, err)
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

// owner is whom the uploads of a request belong to.
func (h *handler) owner(ctx context.Context, at request) registry.UploadOwner {
	return registry.UploadOwner{Repository: at.repository, Principal: h.Principal(ctx)}
}

// location is the URL of an upload.
func (at request) location() string { return "/v2/" + at.repository + "/blobs/uploads/" + at.last }

// received is the Range header of an upload of n bytes. The protocol has no way to write
// an empty range; that of an empty upload is the one that clients expect.
func received(n int64) string { return "0-" + strconv.FormatInt(max(n-1, 0), 10) }
