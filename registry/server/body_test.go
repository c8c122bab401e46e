package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/server"
)

// Each route reads as much as its requests need.
func TestBodiesAreBoundedByRoute(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const path = "/api/v1/models/vision/digits/"
	for route, limit := range map[string]int{
		"POST " + path + "resolve": 512 << 10, "PUT /api/v1/node-types/x": 512 << 10, "PUT /api/v1/runtimes/x": 512 << 10,
		"POST " + path + "evidence": 12 << 20, "POST " + path + "promotions": 64 << 10, "POST " + path + "rollbacks": 64 << 10, "POST /api/v1/tokens": 64 << 10,
		"POST /api/v1/webhooks": 64 << 10, "POST /api/v1/node-reports": 512 << 10, "POST /api/v1/restrictions": 6 << 20,
		"DELETE /api/v1/node-types/x": 64 << 10,
	} {
		method, target, _ := strings.Cut(route, " ")
		for _, stated := range []bool{true, false} {
			var body io.Reader = strings.NewReader(`{"x":"` + strings.Repeat("x", limit) + `"}`)
			if !stated {
				body = io.MultiReader(body)
			}
			r := httptest.NewRequest(method, target, body)
			r.Header.Set("Content-Type", "application/json")
			got := httptest.NewRecorder()
			w.handler.ServeHTTP(got, r)
			if method == http.MethodDelete && !stated {
				continue // it reads none
			}
			wantProblem(t, route, got, http.StatusRequestEntityTooLarge, registry.CodeInvalid)
		}
		r := httptest.NewRequest(method, target, strings.NewReader(`{"x":"`+strings.Repeat("x", limit-8)+`"}`))
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		if got.Code == http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s, want that %d bytes are read", route, got.Body, limit)
		}
	}
}

// Whoever finds the budget for bodies in use is told to try again.
func TestBusyWithBodies(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	w := setup(t, func(c *server.Config) {
		read := c.ReadNode
		c.ReadNode = func(name string, data []byte) (artifact.Node, error) {
			begun <- struct{}{}
			<-end
			return read(name, data)
		}
	})
	h := host.BodyBudget{Bytes: 1, Wait: 1}.Bodies().Limit(w.handler)
	put := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/api/v1/node-types/x", strings.NewReader(`{"x":"`+strings.Repeat("x", 100<<10)+`"}`))
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		return got
	}
	done := make(chan struct{})
	go func() { put(); close(done) }()
	<-begun
	got := put()
	if p := wantProblem(t, "the second", got, http.StatusServiceUnavailable, registry.CodeUnavailable); !strings.Contains(p.Detail, "try again") || got.Header().Get("Retry-After") == "" {
		t.Errorf("the second: %v %s, want when to try again", got.Header(), got.Body)
	}
	close(end)
	<-done
}
