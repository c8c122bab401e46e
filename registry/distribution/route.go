package distribution

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// New returns the handler of all paths under /v2/. Mount it at the root of its host, as the
// protocol requires, and do not wrap it with handlers that buffer or compress bodies. Errors:
// CodeInvalid if a required field of c is nil.
func New(c Config) (http.Handler, error) {
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"Blobs", c.Blobs == nil}, {"Refs", c.Refs == nil}, {"Deleter", c.Deleter == nil},
		{"Uploads", c.Uploads == nil}, {"Authorize", c.Authorize == nil},
		{"UploadCounts", c.MaxUploads > 0 && c.UploadCounts == nil},
		{"ReferrerCounts", c.MaxReferrers > 0 && c.ReferrerCounts == nil},
	} {
		if required.missing {
			return nil, registry.Errorf(registry.CodeInvalid, "distribution: Config.%s is required", required.name)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Principal == nil {
		c.Principal = func(context.Context) string { return "" }
	}
	if c.Prefixes == nil {
		c.Prefixes = func(context.Context) []string { return []string{""} }
	}
	if c.Challenge == nil {
		c.Challenge = basicChallenge
	}
	c.MaxManifestBytes = cmp.Or(c.MaxManifestBytes, DefaultMaxManifestBytes)
	c.MaxTags = cmp.Or(c.MaxTags, DefaultMaxTags)
	return &handler{
		Config: c, routes: routes(), manifests: lru.New[registry.Digest, []byte](manifestsBytes),
		largeLists: make(chan struct{}, largeLists),
		sightings:  lru.New[registry.Digest, sighting](checkedBytes),
	}, nil
}

func basicChallenge(*http.Request, Access) string { return `Basic realm="mlpromote", charset="UTF-8"` }

// routes lists all operations of the handler.
func routes() map[endpoint]map[string]route {
	return map[endpoint]map[string]route{
		base: {
			http.MethodGet:  {Pull, ping},
			http.MethodHead: {Pull, ping},
		},
		catalog: {
			http.MethodGet: {List, listRepositories},
		},
		blobs: {
			http.MethodGet:    {Pull, getBlob},
			http.MethodHead:   {Pull, getBlob},
			http.MethodDelete: {Delete, deleteBlob},
		},
		uploads: {
			http.MethodPost: {Push, beginUpload},
		},
		upload: {
			http.MethodGet:    {Push, getUpload},
			http.MethodPatch:  {Push, patchUpload},
			http.MethodPut:    {Push, putUpload},
			http.MethodDelete: {Push, deleteUpload},
		},
		manifests: {
			http.MethodGet:    {Pull, getManifest},
			http.MethodHead:   {Pull, getManifest},
			http.MethodPut:    {Push, putManifest},
			http.MethodDelete: {Delete, deleteManifest},
		},
		tags: {
			http.MethodGet: {Pull, listTags},
		},
		referrers: {
			http.MethodGet: {Pull, listReferrers},
		},
	}
}

// ServeHTTP handles one request and sends errors in the protocol's form.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Docker-Distribution-Api-Version", "registry/2.0") // some clients look for it
	// Pushers choose the media types. Prevent browsers from executing such content.
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	at := parse(r.URL.Path)
	if err := serve(h, w, r, at); err != nil {
		fail(h, w, r, at, err)
	}
}

func serve(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	methods, ok := h.routes[at.endpoint]
	if !ok {
		return problemf(404, codeUnsupported,
			"no such endpoint: want /v2/<repository>/ followed by blobs, manifests, tags or referrers")
	}
	route, ok := methods[r.Method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		return problemf(405, codeUnsupported, "method %s: want one of %s", r.Method, allowed).with("Allow", allowed)
	}
	if at.endpoint != base && at.endpoint != catalog && !isRepository(at.repository) {
		return problemf(
			400,
			codeNameInvalid,
			"repository %q: want at most %d characters: lower-case letters and digits in components separated by '/', inner "+
				"'.', '_' or '-'",
			at.repository,
			registry.MaxNameLength,
		)
	}
	if err := h.Authorize(r.Context(), Access{at.repository, route.action}); err != nil {
		return refusal(h, r, Access{at.repository, route.action}, err)
	}
	return route.serve(h, w, r, at)
}

// ping responds that this is a registry and that the caller may use it.
func ping(_ *handler, w http.ResponseWriter, _ *http.Request, _ request) error {
	return writeJSON(w, "application/json", struct{}{})
}
