package serving

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A request that goes past the mux is one that the mux would hand to the same handler. All others
// are for the mux, which redirects or refuses them.
func TestRequestsPastTheMux(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", func(http.ResponseWriter, *http.Request) {})
	past := 0
	for _, path := range []string{
		"/api/", "/api/v1/models/vision%2Fdigits/resolve?environment=prod", "/api/v1/a.b/c", "/api/%2e%2e/x", "/api/%2F%2Fx", "/api/..%2Fx", "/api/x/",
		"/api", "/apis/", "/", "//api/", "/api//x", "/api/./x", "/api/../v2/", "/api/x/..", "/v2/../api/x", "/%61pi/x", "/api/x/.",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodConnect} {
			r := httptest.NewRequest(method, "http://registry.example"+path, nil)
			if !isBelow(r, "/api/") {
				continue
			}
			past++
			recorder := httptest.NewRecorder()
			mux.ServeHTTP(recorder, r)
			if _, pattern := mux.Handler(r); pattern != "/api/" || recorder.Code != http.StatusOK {
				t.Errorf("%s %s goes past the mux, which has the pattern %q for it and answers %d", method, path, pattern, recorder.Code)
			}
		}
	}
	if past < 10 {
		t.Errorf("%d requests went past the mux, want at least 10", past)
	}
}
