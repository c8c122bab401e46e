package distribution

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// serveContent sends stored bytes: all, a range, or only the headers. It closes the blob. The digest
// is the entity tag, because bytes never change under a digest. Complete content is hashed
// while it is sent, unless it was hashed recently. If it does not match, content closes the
// connection early.
func serveContent(h *handler,
	w http.ResponseWriter,
	r *http.Request,
	blob storage.Blob,
	d registry.Digest,
	size int64,
	mediaType string,
) error {
	defer blob.Close()
	if strings.Contains(r.Header.Get("Range"), ",") {
		// For several ranges http.ServeContent reads in a goroutine of its own, which may go on after
		// the blob is closed. A server may ignore Range (RFC 9110, section 14.2).
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Docker-Content-Digest", string(d))
	header.Set("Etag", `"`+string(d)+`"`)
	ranged := &rangeWriter{ResponseWriter: w}
	version := storage.VersionOf(blob)
	if _, read := blob.(inMemory); read || wasRight(h, d, version) {
		http.ServeContent(ranged, r, "", time.Time{}, blob)
	} else {
		c := newChecked(blob, d, size)
		http.ServeContent(ranged, r, "", time.Time{}, c)
		if err := c.failure(); err != nil {
			breakOff(r.Context(), h, d, err)
		}
		if c.right() {
			isRight(h, d, version)
		}
	}
	if ranged.refused {
		return problemf(416, codeSizeInvalid, "range %q: %s has %d bytes", r.Header.Get("Range"), d, size)
	}
	return nil
}

// breakOff aborts a response that has begun, so that the client does not treat it as complete.
func breakOff(ctx context.Context, h *handler, d registry.Digest, err error) {
	if registry.HasCode(err, registry.CodeDigest) {
		noteDamage(ctx, h, d, err)
	} else if ctx.Err() == nil {
		h.Logger.ErrorContext(ctx, "stored bytes cannot be read", "digest", d, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// openSmall opens content. It reads and verifies small content completely, so that damage is
// found before the response begins. Errors: as readSmall.
func openSmall(ctx context.Context, h *handler, d registry.Digest, size int64) (storage.Blob, error) {
	if size > smallManifest {
		return openBlob(ctx, h, d, size)
	}
	raw, err := readSmall(ctx, h, d, size)
	if err != nil {
		return nil, err
	}
	return inMemory{bytes.NewReader(raw)}, nil
}

// readSmall reads and hashes content. Errors: as open; CodeDigest if its bytes do not match.
func readSmall(ctx context.Context, h *handler, d registry.Digest, size int64) ([]byte, error) {
	blob, err := openBlob(ctx, h, d, size)
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
		noteDamage(ctx, h, d, err)
		return nil, err
	}
	return raw, nil
}

// openBlob opens content that has a record. If the bytes are missing or truncated, it logs that and
// returns CodeNotFound. A client that checks before it pushes then repairs the damage.
func openBlob(ctx context.Context, h *handler, d registry.Digest, size int64) (storage.Blob, error) {
	blob, have, err := h.Blobs.Open(ctx, d)
	if err == nil && have == size {
		return blob, nil
	}
	if err == nil {
		err = errors.Join(
			registry.Errorf(registry.CodeNotFound, "blob %s has %d bytes, want %d: push it again", d, have, size),
			blob.Close())
	}
	return nil, missing(ctx, h, d, err)
}

// missing logs that the bytes of a record are missing or wrong, and returns err.
func missing(ctx context.Context, h *handler, d registry.Digest, err error) error {
	h.Logger.WarnContext(ctx, "bytes of a record are missing", "digest", d, "error", err)
	return err
}

// rangeWriter replaces the 416 response of http.ServeContent. It passes everything else
// through, including ReadFrom, so that the kernel copies files to sockets.
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
	if limited, ok := r.(*io.LimitedReader); ok {
		if pieces, ok := limited.R.(sender); ok {
			sent, err := pieces.SendTo(w.ResponseWriter, limited.N)
			limited.N -= sent
			return sent, err
		}
	}
	return io.Copy(w.ResponseWriter, r)
}

// sender is content of several files. Each of them goes to the socket as a whole file does.
type sender interface {
	SendTo(w io.Writer, n int64) (sent int64, err error)
}

const (
	// manifestsBytes limits the memory for cached manifests. It is enough for thousands of typical
	// ones.
	manifestsBytes = 16 << 20
	// smallManifest is the size up to which a manifest is read at once. Larger ones are rare, and
	// many concurrent requests for them would take much memory.
	smallManifest = 64 << 10
)

// inMemory is content in memory.
type inMemory struct{ *bytes.Reader }

// Close does nothing.
func (inMemory) Close() error { return nil }
