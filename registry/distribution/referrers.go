package distribution

import (
	"encoding/json"
	"net/http"
	"net/url"

	"mlpromote.dev/mlpromote/registry"
)

// referrer is a descriptor in a list of referrers.
type referrer struct {
	MediaType    string            `json:"mediaType"`
	Digest       registry.Digest   `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// listReferrers lists who refers to a digest, by digest. Nobody has to know it: who has
// no referrers has an empty list. A page is no larger than a manifest may be, because
// clients do not read more.
func (h *handler) listReferrers(w http.ResponseWriter, r *http.Request, at request) error {
	subject := registry.Digest(at.last)
	if err := subject.Validate(); err != nil {
		return problemf(400, codeDigestInvalid, "digest %q: %w", at.last, err)
	}
	query := r.URL.Query()
	artifactType := query.Get("artifactType")
	found, err := h.Refs.Referrers(r.Context(), at.repository, subject, artifactType)
	if err != nil {
		return err
	}
	page, last, err := h.page(found, registry.Digest(query.Get("last")))
	if err != nil {
		return err
	}
	if last != "" {
		more := url.Values{"last": {string(last)}}
		if artifactType != "" {
			more.Set("artifactType", artifactType)
		}
		next(w, r, more)
	}
	if artifactType != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	return writeJSON(w, typeIndex, struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []json.RawMessage `json:"manifests"`
	}{2, typeIndex, page})
}

// page encodes the referrers after a digest, as many as fit, and gives the last one
// if there are more. It holds at least one, however large.
func (h *handler) page(found []registry.Manifest, after registry.Digest) (page []json.RawMessage, last registry.Digest, err error) {
	const frame = 128 // bytes of the index around its entries
	room := h.MaxManifestBytes - frame
	page = []json.RawMessage{}
	for _, m := range found {
		if m.Digest <= after {
			continue
		}
		entry, err := json.Marshal(referrer{m.MediaType, m.Digest, m.Size, m.Derived.ArtifactType, m.Derived.Annotations})
		if err != nil {
			return nil, "", registry.Errorf(registry.CodeInternal, "encode referrer %s: %w", m.Digest, err)
		}
		if room -= int64(len(entry)) + 1; room < 0 && len(page) > 0 {
			return page, last, nil
		}
		page = append(page, entry)
		last = m.Digest
	}
	return page, "", nil
}
