package distribution

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

func getBlob(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	d, err := parseDigest(at.last)
	if err != nil {
		return err
	}
	size, err := h.Refs.Blob(r.Context(), at.repository, d)
	if err != nil {
		return err
	}
	redirected, err := redirect(h, w, r, d, size)
	if redirected || err != nil {
		return err
	}
	open := openBlob
	if r.Method == http.MethodGet {
		open = openSmall
	}
	blob, err := open(r.Context(), h, d, size)
	if err != nil {
		return err
	}
	return serveContent(h, w, r, blob, d, size, "application/octet-stream")
}

// deleteBlob removes the blob from this repository. Other repositories may still hold it.
func deleteBlob(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	d, err := parseDigest(at.last)
	if err != nil {
		return err
	}
	if err := h.Deleter.RemoveBlob(r.Context(), at.repository, d); err != nil {
		return keeps(err, "GET, HEAD")
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// created responds that a blob can be pulled.
func created(w http.ResponseWriter, at request, d registry.Digest) {
	w.Header().Set("Location", "/v2/"+at.repository+"/blobs/"+string(d))
	w.Header().Set("Docker-Content-Digest", string(d))
	w.WriteHeader(http.StatusCreated)
}
