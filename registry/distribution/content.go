package distribution

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// content answers with stored bytes, which it closes: whole, a range of them, or only their
// headers. Bytes never change under a digest, so the digest is the entity tag.
func (h *handler) content(w http.ResponseWriter, r *http.Request, blob registry.Blob, d registry.Digest, size int64, mediaType string) error {
	defer blob.Close()
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Docker-Content-Digest", string(d))
	header.Set("Etag", `"`+string(d)+`"`)
	ranged := &rangeWriter{ResponseWriter: w}
	http.ServeContent(ranged, r, "", time.Time{}, blob)
	if ranged.refused {
		return problemf(416, codeSizeInvalid, "range %q: %s has %d bytes", r.Header.Get("Range"), d, size)
	}
	return nil
}

// open opens content that a record says is there. If the bytes are gone or cut off, that
// is worth a line in the log; the caller gets CodeNotFound, so that a client that asks
// before it pushes mends the damage.
func (h *handler) open(ctx context.Context, d registry.Digest, size int64) (registry.Blob, error) {
	blob, have, err := h.Blobs.Open(ctx, d)
	if err == nil && have == size {
		return blob, nil
	}
	if err == nil {
		err = errors.Join(registry.Errorf(registry.CodeNotFound, "blob %s has %d bytes, want %d: push it again", d, have, size), blob.Close())
	}
	return nil, h.missing(ctx, d, err)
}

// missing logs that the bytes of a record are not there, or are others, and gives err.
func (h *handler) missing(ctx context.Context, d registry.Digest, err error) error {
	h.Logger.WarnContext(ctx, "bytes of a record are missing", "digest", d, "error", err)
	return err
}

// rangeWriter keeps http.ServeContent from answering 416 in its own words. All else goes
// through, and ReadFrom with it: it is what makes the kernel copy a file to a socket.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func (w *rangeWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return 0, nil
	}
	return io.Copy(w.ResponseWriter, r)
}
