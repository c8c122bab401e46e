package host

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		recorder := httptest.NewRecorder()
		SecurityHeaders(http.NotFoundHandler(), strict).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"Strict-Transport-Security": map[bool]string{true: "max-age=31536000"}[strict],
		} {
			if got := recorder.Header().Get(key); got != want {
				t.Errorf("with TLS %t: %s is %q, want %q", strict, key, got, want)
			}
		}
	}
}
