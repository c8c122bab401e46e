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
// did. If not, it leaves the request as it was, and whoever handles it as any other finds out
// what is wrong with it.
func storeWhole(h *handler, r *http.Request, at request, d registry.Digest) (stored bool, err error) {
	if r.ContentLength <= 0 || r.ContentLength > smallUpload {
		return false, nil
	}
	if c, err := parseChunk(r.Header.Get("Content-Range"), r.ContentLength, 0); err != nil || c.start != 0 {
		return false, nil //nolint:nilerr // see above
	}
	raw, err := io.ReadAll(r.Body)
	r.Body = unread{io.MultiReader(bytes.NewReader(raw), r.Body), r.Body}
	// A store does not read bytes that it already has. Hash them here, because only a caller that
	// has the bytes may add the blob.
	if err != nil || d.Algorithm().FromBytes(raw) != d {
		return false, nil //nolint:nilerr // see above
	}
	ctx := r.Context()
	if err := h.Blobs.Put(ctx, d, int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return false, err
	}
	return h.Refs.AddUploaded(ctx, ownerOf(ctx, h, at), at.last, d, int64(len(raw)))
}

// unread is a body of which the first bytes were read and are read again.
type unread struct {
	io.Reader
	io.Closer
}
