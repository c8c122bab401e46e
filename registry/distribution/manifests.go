package distribution

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

func getManifest(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	m, err := findManifest(r.Context(), h, at)
	if err != nil {
		return err
	}
	content, err := openManifest(r.Context(), h, m)
	if r.Method == http.MethodHead && registry.HasCode(err, registry.CodeDigest) {
		// A client that checks before it pushes will then push, which repairs the damage.
		return registry.Errorf(registry.CodeNotFound, "%w", err)
	}
	if err != nil {
		return err
	}
	return serveContent(h, w, r, content, m.Digest, m.Size, m.MediaType)
}

// findManifest returns the record that a tag or digest names.
func findManifest(ctx context.Context, h *handler, at request) (storage.Manifest, error) {
	var d registry.Digest
	var err error
	switch {
	case isDigest(at.last):
		d, err = parseDigest(at.last)
	case registry.ValidTag(at.last):
		d, err = h.Refs.Tag(ctx, at.repository, at.last)
	default:
		err = problemf(404, codeManifestUnknown, "tag %q does not exist", at.last)
	}
	if err != nil {
		return storage.Manifest{}, err
	}
	return h.Refs.Manifest(ctx, at.repository, d)
}

// putManifest stores a manifest unchanged: first the bytes, then record and tags, so that
// visible manifests are always complete.
func putManifest(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	tags, err := tagsOf(r, at)
	if err != nil {
		return err
	}
	raw, err := readManifest(h, w, r)
	if err != nil {
		return err
	}
	d, err := digestOf(at, raw)
	if err != nil {
		return err
	}
	m, err := checkManifest(r.Context(), h, at.repository, r.Header.Get("Content-Type"), raw)
	if err != nil {
		return err
	}
	m.Digest, m.Pusher = d, h.Principal(r.Context())
	if err := mayRefer(r.Context(), h, at.repository, m); err != nil {
		return err
	}
	if h.Inspect != nil {
		if err := h.Inspect(r.Context(), at.repository, d, raw); err != nil {
			return err
		}
	}
	if err := storeManifest(r.Context(), h, at.repository, m, raw, tags); err != nil {
		return err
	}
	w.Header().Set("Location", "/v2/"+at.repository+"/manifests/"+string(d))
	w.Header().Set("Docker-Content-Digest", string(d))
	if m.Derived.Subject != "" {
		w.Header().Set("OCI-Subject", string(m.Derived.Subject)) // tells clients not to push a fallback tag
	}
	if isDigest(at.last) && len(tags) > 0 {
		w.Header().Set("OCI-Tag", strings.Join(tags, ", ")) // tells clients not to push the tags themselves
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

// maxTags limits the tags that come with one manifest.
const maxTags = 100

// tagsOf returns the tags of a manifest: the tag in the path or, for a push by digest, those of
// the query. The query is part of the edition after 1.1.1. Without it, a tag could not name a
// manifest by a digest other than sha256.
func tagsOf(r *http.Request, at request) ([]string, error) {
	tags := []string{at.last}
	if isDigest(at.last) {
		tags = r.URL.Query()["tag"]
	}
	if len(tags) > maxTags {
		return nil, problemf(414, codeManifestInvalid, "%d tags: want at most %d in one request", len(tags), maxTags)
	}
	for _, tag := range tags {
		if !registry.ValidTag(tag) {
			return nil, problemf(400, codeManifestInvalid, "tag %q: want up to 128 letters, digits, '.', '_' or '-'", tag)
		}
	}
	return tags, nil
}

// digestOf returns the digest of a manifest, which must match the digest in the path.
func digestOf(at request, raw []byte) (registry.Digest, error) {
	if !isDigest(at.last) {
		return digest.FromBytes(raw), nil
	}
	want, err := parseDigest(at.last)
	if err != nil {
		return "", err
	}
	if d := want.Algorithm().FromBytes(raw); d != want {
		return "", problemf(400, codeDigestInvalid, "manifest %s: the %d bytes sent have the digest %s", want, len(raw), d)
	}
	return want, nil
}

// readManifest reads a body of limited size.
func readManifest(h *handler, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.MaxManifestBytes {
		return nil, &http.MaxBytesError{Limit: h.MaxManifestBytes}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxManifestBytes))
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) {
		return raw, err
	}
	if registry.HasCode(err, registry.CodeUnavailable) { // too many bodies at once
		return nil, problemf(503, codeTooManyRequests, "%w", err).with("Retry-After", "5")
	}
	p := problemf(400, codeSizeInvalid, "the body ended early")
	p.cause = err
	return nil, p
}

// mayRefer refuses another referrer of a subject if the principal has pushed the maximum,
// because every promotion reads all of them. An existing referrer may be pushed again.
func mayRefer(ctx context.Context, h *handler, repository string, m storage.Manifest) error {
	if m.Derived.Subject == "" || h.MaxReferrers == 0 || m.Pusher == "" {
		return nil
	}
	n, err := h.ReferrerCounts.CountReferrers(ctx, repository, m.Derived.Subject, m.Pusher)
	if err != nil || n < h.MaxReferrers {
		return err
	}
	if _, err := h.Refs.Manifest(ctx, repository, m.Digest); !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	return problemf(
		http.StatusForbidden,
		codeDenied,
		"%s pushed %d manifests about %s, the maximum per caller: an administrator can delete some (mlpromote evidence "+
			"delete) or raise max-referrers",
		m.Pusher,
		n,
		m.Derived.Subject,
	)
}

func storeManifest(
	ctx context.Context, h *handler,
	repository string,
	m storage.Manifest,
	raw []byte,
	tags []string,
) error {
	if err := h.Blobs.Put(ctx, m.Digest, m.Size, bytes.NewReader(raw)); err != nil {
		return err
	}
	return h.Refs.PutManifest(ctx, repository, m, tags...)
}

// deleteManifest deletes a tag, or a manifest with all its tags.
func deleteManifest(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	if err := deleteReference(r.Context(), h, at); err != nil {
		return keeps(err, "GET, HEAD, PUT")
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func deleteReference(ctx context.Context, h *handler, at request) error {
	if !isDigest(at.last) {
		return h.Deleter.DeleteTag(ctx, at.repository, at.last)
	}
	d, err := parseDigest(at.last)
	if err != nil {
		return err
	}
	return h.Deleter.DeleteManifest(ctx, at.repository, d)
}

// keeps turns the refusal of a Deleter into a 405. The protocol treats an impossible deletion
// as an unsupported method. allowed lists the supported ones.
func keeps(err error, allowed string) error {
	if registry.CodeOf(err) != registry.CodePolicy {
		return err
	}
	return problemf(http.StatusMethodNotAllowed, codeDenied, "%w", err).with("Allow", allowed)
}
