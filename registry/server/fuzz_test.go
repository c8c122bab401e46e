package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Whatever path and query are asked, an answer comes, and none that blames the service.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/api/v1/models/vision/digits/resolve", "env=prod&arch=amd64", "")
	f.Add("GET", "/api/v1/history", "limit=3&cursor=MTo3&order=desc", "")
	f.Add("POST", "/api/v1/models/a/resolve", "", `{"labels":{"kubernetes.io/arch":"amd64"}}`)
	f.Add("PUT", "/api/v1/node-types/a", "", `{"v":1}`)
	f.Add("GET", "/api/v1/promotions/7", "", "")
	f.Add("POST", "/api/v1/webhooks", "", `{"url":"https://example.com"}`)
	w := setup(f)
	w.Promoted(f, registrytest.Build{})
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}, method) || strings.HasPrefix(path, "/api/v1/events") {
			return
		}
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		if got.Code >= 500 || got.Code < 200 {
			t.Fatalf("%s %q?%q: %d %s", method, path, query, got.Code, got.Body)
		}
		if got.Code >= 400 && method != http.MethodHead && got.Header().Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%s %q?%q: %d %v", method, path, query, got.Code, got.Header())
		}
	})
}
