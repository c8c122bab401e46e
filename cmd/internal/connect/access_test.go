package connect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer/jobtoken"
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

// Who writes the body of a request does not wait for ever where no token can be had.
func TestNoTokenClosesTheBody(t *testing.T) {
	t.Parallel()
	body, writer := io.Pipe()
	transport := &Authorized{Service: &url.URL{Scheme: "https", Host: "registry.example.com"},
		Tokens: &jobtoken.Source{Audience: "a", Getenv: func(string) string { return "" }}}
	response, err := transport.RoundTrip(httptest.NewRequest(http.MethodPut, "https://registry.example.com/v2/", body))
	if err == nil {
		response.Body.Close()
		t.Fatal("got an answer, want an error")
	}
	written := make(chan error, 1)
	go func() { _, err := writer.Write([]byte("x")); written <- err }()
	if err := <-written; err == nil {
		t.Error("the body was read, want it closed")
	}
}

// A service that gets a token for the authorities of sigstore could sign as the job.
func TestAudienceOfAuthoritiesIsRefused(t *testing.T) {
	t.Parallel()
	s := Service{Getenv: func(name string) string { return map[string]string{"MLPROMOTE_TOKEN_AUDIENCE": "sigstore"}[name] }}
	_, err := s.authorization(t.Context(), &url.URL{Scheme: "https", Host: "registry.example.com"}, nil)
	if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "sign as this job") {
		t.Errorf("got %v, want a refusal", err)
	}
}
