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
	f.Add("GET", "/api/v1/models/vision/digits/resolve", "environment=prod&arch=amd64", "")
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

// Whatever headers say, likewise.
func FuzzHeaders(f *testing.F) {
	headers := []string{"If-None-Match", "Accept", "Accept-Encoding", "Idempotency-Key", "Last-Event-ID", "X-Request-Id", "Content-Type"}
	requests := []struct{ method, path string }{
		{"GET", "/api/v1/heads"}, {"HEAD", "/api/v1/events"}, {"POST", "/api/v1/models/vision/digits/rollback"}, {"PUT", "/api/v1/node-types/a"},
		{"GET", "/api/v1/models/" + registrytest.Model + "/resolve?environment=prod&arch=amd64&level=v3"},
	}
	for i, value := range []string{`W/"x", "y", *`, "text/plain;q=0.5, */*;q=0",
		"gzip;q=0.001, br", `"k"`, "-7", strings.Repeat("x", 300), "application/json; charset"} {
		for on := range requests {
			f.Add(uint8(on), uint8(i), value)
		}
	}
	w := setup(f)
	w.Promoted(f, registrytest.Build{})
	f.Fuzz(func(t *testing.T, on, header uint8, value string) {
		request := requests[int(on)%len(requests)]
		r := httptest.NewRequest(request.method, request.path, strings.NewReader(`{"v":1}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header[http.CanonicalHeaderKey(headers[int(header)%len(headers)])] = []string{value}
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		if got.Code >= 500 || got.Code < 200 {
			t.Fatalf("%s %s, %s %q: %d %s", request.method, request.path, headers[int(header)%len(headers)], value, got.Code, got.Body)
		}
		if id := got.Header().Get("X-Request-Id"); strings.ContainsAny(id, "\r\n") {
			t.Fatalf("%q comes back as %q", value, id)
		}
	})
}
