package distribution

import (
	"context"
	"encoding/json"
	"io"
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

// referrerList is a page of a list of referrers. It is written in pieces, so that it is in
// memory only once.
type referrerList struct {
	entries []json.RawMessage
	last    registry.Digest // of the page; empty on the last page
}

const (
	referrerListHead = `{"schemaVersion":2,"mediaType":"` + typeIndex + `","manifests":[`
	referrerListTail = "]}"
	// largeReferrerList is the size from which a list waits for a free slot, because pushers
	// choose the length of annotations. Up to largeLists such lists are in memory at a time.
	largeReferrerList = 256 << 10
	largeLists        = 4
)

// listReferrers lists the manifests that refer to a digest, by digest. The digest need not
// exist; the list is then empty. A page is not larger than a manifest may be, because clients
// do not read more.
func listReferrers(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	subject := registry.Digest(at.last)
	if err := subject.Validate(); err != nil {
		return problemf(400, codeDigestInvalid, "digest %q: %w", at.last, err)
	}
	query := r.URL.Query()
	artifactType := query.Get("artifactType")
	turn := &turn{of: h.largeLists, done: r.Context().Done()}
	defer turn.end()
	page, err := readReferrers(r.Context(), h, at.repository, subject, artifactType, registry.Digest(query.Get("last")), turn)
	if err != nil {
		return err
	}
	if page.last != "" {
		more := url.Values{"last": {string(page.last)}}
		if artifactType != "" {
			more.Set("artifactType", artifactType)
		}
		linkNext(w, r, more)
	}
	if artifactType != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	w.Header().Set("Content-Type", typeIndex)
	page.write(w)
	return nil
}

// readReferrers encodes a page of the referrers after a digest. A page has at least one referrer of
// any size.
func readReferrers(
	ctx context.Context, h *handler,
	repository string,
	subject registry.Digest,
	artifactType string,
	after registry.Digest,
	turn *turn,
) (referrerList, error) {
	var list referrerList
	bytes := len(referrerListHead) + len(referrerListTail)
	for {
		found, err := h.Refs.Referrers(ctx, repository, subject, artifactType, after)
		if err != nil || len(found) == 0 {
			return list, err
		}
		for _, m := range found {
			entry, err := json.Marshal(referrer{m.MediaType, m.Digest, m.Size, m.Derived.ArtifactType, m.Derived.Annotations})
			if err != nil {
				return list, registry.Errorf(registry.CodeInternal, "encode referrer %s: %w", m.Digest, err)
			}
			if bytes += len(entry) + 1; int64(bytes) > h.MaxManifestBytes && len(list.entries) > 0 {
				list.last = after
				return list, nil
			}
			if bytes > largeReferrerList && !turn.take() {
				return list, ctx.Err()
			}
			list.entries = append(list.entries, entry)
			after = m.Digest
		}
	}
}

// write writes the list as the response. It ignores errors, which mean that the client
// disconnected.
func (l referrerList) write(w io.Writer) {
	_, _ = io.WriteString(w, referrerListHead)
	for i, entry := range l.entries {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = w.Write(entry)
	}
	_, _ = io.WriteString(w, referrerListTail)
}

// turn is one of a limited number of slots.
type turn struct {
	of    chan struct{}
	done  <-chan struct{}
	taken bool
}

// take waits for a slot, once. It reports whether it got one before the request ended.
func (t *turn) take() bool {
	if t.taken {
		return true
	}
	select {
	case t.of <- struct{}{}:
		t.taken = true
	case <-t.done:
	}
	return t.taken
}

// end frees the slot.
func (t *turn) end() {
	if t.taken {
		<-t.of
	}
}
