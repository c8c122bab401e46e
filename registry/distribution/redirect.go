package distribution

import (
	"context"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Redirector is a store with blobs that clients can read without this handler.
type Redirector interface {
	// Redirect returns a URL by which anyone can read d until it expires, also in ranges. It
	// returns false if it has no such URL; then the handler sends the bytes.
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

// redirect sends a client to the URL of the bytes, and reports whether it did. The caller has
// checked that the blob belongs to the repository. It does not redirect HEAD and conditional
// requests, which the handler answers itself.
func redirect(h *handler, w http.ResponseWriter, r *http.Request, d registry.Digest, size int64) (bool, error) {
	store, ok := h.Blobs.(Redirector)
	if !ok || h.Redirect <= 0 || r.Method != http.MethodGet || isConditional(r.Header) {
		return false, nil
	}
	blob, err := openBlob(r.Context(), h, d, size) // do not redirect to missing bytes
	if err != nil {
		return false, err
	}
	if err := blob.Close(); err != nil {
		return false, err
	}
	url, ok, err := store.Redirect(r.Context(), d, h.Redirect)
	if !ok || err != nil {
		return false, err
	}
	w.Header().Set("Location", url)
	w.Header().Set("Docker-Content-Digest", string(d))
	w.Header().Set("Cache-Control", "no-store") // the URL expires
	w.WriteHeader(http.StatusTemporaryRedirect)
	return true, nil
}

func isConditional(header http.Header) bool {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"} {
		if header.Get(name) != "" {
			return true
		}
	}
	return false
}
