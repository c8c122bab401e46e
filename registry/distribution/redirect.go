package distribution

import (
	"context"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Redirector is a store whose blobs clients can read without this handler.
type Redirector interface {
	// Redirect gives a URL by which anybody can read d until it expires. It answers false
	// where there is none; then the handler sends the bytes. Range requests work on it.
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

// redirect sends a client to where the bytes are, and reports whether it did. That the
// blob belongs to the repository has been made sure of. What a HEAD asks for is known
// here, and conditions are about entity tags that are ours.
func (h *handler) redirect(w http.ResponseWriter, r *http.Request, d registry.Digest, size int64) (bool, error) {
	store, ok := h.Blobs.(Redirector)
	if !ok || h.Redirect <= 0 || r.Method != http.MethodGet || isConditional(r.Header) {
		return false, nil
	}
	blob, err := h.open(r.Context(), d, size) // a URL of nothing would be no help
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
	w.Header().Set("Cache-Control", "no-store") // it expires
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
