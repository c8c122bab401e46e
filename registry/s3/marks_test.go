package s3_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestContentMarks(t *testing.T) {
	t.Parallel()
	registrytest.TestContentMarks(t, func(t *testing.T) func() storage.ContentMarks {
		prefix := newPrefix(t)
		return func() storage.ContentMarks { return open(t, shared, prefix) }
	})
}

// A mark is found from every prefix that contains its own and from every prefix inside it,
// also in folders that have a name of this registry's own folders. From a prefix beside it, it
// is not.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	newPrefix(t)
	mark := storage.ContentMark{Version: storage.ContentMarkVersion, Catalog: "a", Epoch: 1}
	for name, c := range map[string]struct {
		marked, opened string
		overlap        bool
	}{
		"itself":                 {"", "", false},
		"inside":                 {"", "/eu", true},
		"deep inside":            {"", "/eu/models/v1.", true},
		"above":                  {"/eu", "", true},
		"far above":              {"/eu/models/team", "", true},
		"in the folder of blobs": {"/blobs", "", true},
		"beside":                 {"/eu", "/us", false},
		"with a longer name":     {"/eu", "/eu2", false},
		"with a shorter name":    {"/eu2", "/eu", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newPrefix(t)
			marked := open(t, shared, root+c.marked)
			must(t, marked.SetContentMark(t.Context(), mark, ""))
			found, err := open(t, shared, root+c.opened).Overlaps(t.Context())
			must(t, err)
			if want := []string{marked.String()}; c.overlap != slices.Equal(found, want) || !c.overlap && len(found) > 0 {
				t.Errorf("with a mark in %s, %s overlaps with %v; want %v, overlap %v", root+c.marked, root+c.opened, found, want, c.overlap)
			}
		})
	}
}

// A store that ignores conditions is refused: two registries could claim one bucket.
func TestStoreWithoutConditions(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	target, err := url.Parse(shared.Endpoint)
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
		r.Out.Header.Del("If-None-Match")
	}})
	t.Cleanup(proxy.Close)
	config, err := s3.ParseURL(shared.URL(prefix))
	must(t, err)
	config.Endpoint = proxy.URL
	b, err := s3.Open(t.Context(), config)
	must(t, err)
	err = b.SetContentMark(t.Context(), storage.ContentMark{Version: 1, Catalog: "a", Epoch: 1}, "")
	wantCode(t, err, registry.CodeUnavailable)
}
