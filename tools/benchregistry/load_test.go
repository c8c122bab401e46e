package main

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLoad has a server that wants a token and speaks TLS, as one that is not on
// loopback does.
func TestLoad(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("four"))
	}))
	t.Cleanup(upstream.Close)
	roots := x509.NewCertPool()
	roots.AddCert(upstream.Certificate())
	for _, tc := range []struct {
		token string
		size  int64
		wrong string // in the error; empty: none
	}{
		{"secret", 4, ""},
		{"secret", 5, "content-length is 4, want 5"},
		{"", 4, "401"},
	} {
		s := &server{name: "test", url: upstream.URL, token: tc.token, client: newClient(roots)}
		rate, all, err := s.load(t.Context(), "/", "*/*", tc.size, 4, 50*time.Millisecond)
		switch {
		case tc.wrong == "" && (err != nil || rate < 20 || all < int64(rate/20)):
			t.Errorf("got %v answers/s, %d in all, %v", rate, all, err)
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("got %v, want an error about %s", err, tc.wrong)
		}
	}
}
