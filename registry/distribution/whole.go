package distribution

import (
	"bytes"
	"io"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// smallUpload is the largest blob that is read into memory if it arrives in one request. Most
// configs, signatures and reports are smaller. It saves the writes that make a longer upload
// resumable.
const smallUpload = 256 << 10

// storeWhole stores a small blob that arrives in one complete request. It reports whether it
// did. If the request fails, it stores nothing.
func (h *handler) storeWhole(r *http.Request, at request, d registry.Digest) (stored bool, err error) {
	if r.ContentLength <= 0 || r.ContentLength > smallUpload {
		return false, nil
	}
	ctx, owner := r.Context(), h.owner(r.Context(), at)
	have, err := h.Uploads.Offset(ctx, owner, at.last)
	if err != nil || have != 0 {
		return false, err
	}
	c, err := parseChunk(r.Header.Get("Content-Range"), r.ContentLength, 0)
	if err != nil || c.start != 0 {
		return false, err
	}
	body := &body{r: r.Body, want: c.length}
	raw, err := io.ReadAll(body)
	if err != nil {
		return false, broken(at, 0, body.err)
	}
	// A store does not read bytes that it already has. Hash them here, because only a caller that
	// has the bytes may add the blob.
	if got := d.Algorithm().FromBytes(raw); got != d {
		err := h.Uploads.Cancel(ctx, owner, at.last)
		if err == nil {
			err = registry.Errorf(
				registry.CodeDigest,
				"upload %s: the %d bytes received have the digest %s, not %s: nothing was stored; send the right content or the "+
					"right digest",
				at.last,
				len(raw),
				got,
				d,
			)
		}
		return false, err
	}
	if err := h.Blobs.Put(ctx, d, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return false, err
	}
	if err := h.Refs.AddBlob(ctx, at.repository, d, int64(len(raw))); err != nil {
		return false, err
	}
	err = h.Uploads.Cancel(ctx, owner, at.last)
	if registry.HasCode(err, registry.CodeNotFound) || registry.HasCode(err, registry.CodeConflict) {
		err = nil // another request ended or continued the upload; the blob is stored
	}
	return err == nil, err
}
