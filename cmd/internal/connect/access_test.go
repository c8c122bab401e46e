package connect

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// The token goes to the service that was named, and to nobody whom it points to.
func TestAuthorizationOfVerbs(t *testing.T) {
	t.Parallel()
	var sent string
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Get("Authorization")
		return httptest.NewRecorder().Result(), nil
	})
	transport := &Authorized{Base: base, Service: &url.URL{Scheme: "https", Host: "registry.example.com"}, Authorization: "Bearer x"}
	for to, want := range map[string]string{
		"https://registry.example.com/v2/": "Bearer x", "http://registry.example.com/v2/": "", "https://registry.example.com:444/": "",
		"https://example.com/": "", "https://registry.example.com.evil.example/": "",
	} {
		r := httptest.NewRequest(http.MethodGet, to, nil)
		response, err := transport.RoundTrip(r)
		if err != nil || sent != want || r.Header.Get("Authorization") != "" {
			t.Errorf("%s is sent %q (error %v), want %q", to, sent, err, want)
		}
		response.Body.Close()
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
