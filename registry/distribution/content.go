package distribution

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// content answers with stored bytes, which it closes: whole, a range of them, or only their
// headers. Bytes never change under a digest, so the digest is the entity tag. Content that is
// sent whole is hashed on its way, unless it was hashed recently. If it does not match, the
// connection is closed before its end.
func (h *handler) content(w http.ResponseWriter, r *http.Request, blob registry.Blob, d registry.Digest, size int64, mediaType string) error {
	defer blob.Close()
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Docker-Content-Digest", string(d))
	header.Set("Etag", `"`+string(d)+`"`)
	ranged := &rangeWriter{ResponseWriter: w}
	version := versionOf(blob)
	if _, read := blob.(inMemory); read || h.wasRight(d, version) {
		http.ServeContent(ranged, r, "", time.Time{}, blob)
	} else {
		c := newChecked(blob, d, size)
		http.ServeContent(ranged, r, "", time.Time{}, c)
		if err := c.failure(); err != nil {
			h.breakOff(r.Context(), d, err)
		}
		if c.right() {
			h.isRight(d, version)
		}
	}
	if ranged.refused {
		return problemf(416, codeSizeInvalid, "range %q: %s has %d bytes", r.Header.Get("Range"), d, size)
	}
	return nil
}

// breakOff aborts a response that has begun, so that the client cannot take it for complete.
func (h *handler) breakOff(ctx context.Context, d registry.Digest, err error) {
	if registry.HasCode(err, registry.CodeDigest) {
		h.damaged(ctx, d, err)
	} else if ctx.Err() == nil {
		h.Logger.ErrorContext(ctx, "stored bytes cannot be read", "digest", d, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// openSmall opens content. Small content it reads and checks whole, so that damage is found
// before the response begins. Errors: as readSmall.
func (h *handler) openSmall(ctx context.Context, d registry.Digest, size int64) (registry.Blob, error) {
	if size > smallManifest {
		return h.open(ctx, d, size)
	}
	raw, err := h.readSmall(ctx, d, size)
	if err != nil {
		return nil, err
	}
	return inMemory{bytes.NewReader(raw)}, nil
}

// readSmall reads and hashes content. Errors: as open; CodeDigest if its bytes do not match.
func (h *handler) readSmall(ctx context.Context, d registry.Digest, size int64) ([]byte, error) {
	blob, err := h.open(ctx, d, size)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	raw := make([]byte, size)
	if _, err := io.ReadFull(blob, raw); err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "read %s: %w", d, err)
	}
	if d.Algorithm().FromBytes(raw) != d {
		err := registry.Errorf(registry.CodeDigest, "the stored bytes of %s are damaged: restore them from a backup", d)
		h.damaged(ctx, d, err)
		return nil, err
	}
	return raw, nil
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
