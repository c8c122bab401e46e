//go:build cgo

package main

import (
	"net/http"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/server"
)

// TestServeLimits bounds what one caller asks for: requests to the REST API and uploads
// under way. Health is asked without any bound.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nrate_limit: 1\nmax_uploads: 2\n")
	refused := 0
	for range 50 {
		response, _ := programtest.Send(t, http.DefaultClient, http.MethodGet, s.URL+"/api/v1/heads")
		if response.StatusCode == http.StatusTooManyRequests {
			refused++
			if response.Header.Get("Retry-After") == "" {
				t.Error("nothing says when to come again")
			}
		} else if response.StatusCode != http.StatusOK {
			t.Error(response.Status)
		}
	}
	if refused == 0 || refused > 40 {
		t.Errorf("%d of 50 requests were refused, want most, and not the first ten", refused)
	}
	if response, _ := programtest.Send(t, http.DefaultClient, http.MethodGet, s.URL+"/readyz"); response.StatusCode != http.StatusNoContent {
		t.Errorf("/readyz: %s", response.Status)
	}
	uploads := s.URL + "/v2/staging/digits/blobs/uploads/"
	var location string
	for n, want := range []int{http.StatusAccepted, http.StatusAccepted, http.StatusTooManyRequests} {
		response, _ := programtest.Send(t, http.DefaultClient, http.MethodPost, uploads)
		if response.StatusCode != want {
			t.Errorf("upload %d: %s, want %d", n, response.Status, want)
		}
		if l := response.Header.Get("Location"); l != "" {
			location = l
		}
	}
	if response, _ := programtest.Send(t, http.DefaultClient, http.MethodDelete, s.URL+location); response.StatusCode != http.StatusNoContent {
		t.Errorf("cancel: %s", response.Status)
	}
	if response, _ := programtest.Send(t, http.DefaultClient, http.MethodPost, uploads); response.StatusCode != http.StatusAccepted {
		t.Errorf("the next upload: %s", response.Status)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// Where nobody says otherwise there is a limit where others come, and none on loopback.
func TestLimitOfDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen string
		rate   int
		want   server.Rate
	}{
		{"127.0.0.1:0", -1, server.Rate{}}, {":5443", -1, server.Rate{PerSecond: serving.PublicRate, Burst: 10 * serving.PublicRate}},
		{":5443", 0, server.Rate{}}, {"127.0.0.1:0", 5, server.Rate{PerSecond: 5, Burst: 50}},
	} {
		config := serving.Config{ListenConfig: serving.ListenConfig{Listen: c.listen}, Rate: c.rate}
		if got := config.Limit(); got != c.want {
			t.Errorf("%s with %d: %+v, want %+v", c.listen, c.rate, got, c.want)
		}
	}
}

// Where addresses are of clients there is a limit for those that guess; behind a proxy and on
// loopback only if somebody says so.
func TestLoginLimitOfDefault(t *testing.T) {
	t.Parallel()
	public := authn.Rate{PerSecond: 1, Burst: serving.PublicLogins}
	for _, c := range []struct {
		listen string
		proxy  bool
		limit  int
		want   authn.Rate
	}{
		{"127.0.0.1:0", false, -1, authn.Rate{}}, {":5443", false, -1, public}, {":5443", true, -1, authn.Rate{}},
		{":5443", false, 0, authn.Rate{}}, {":5443", true, 30, authn.Rate{PerSecond: 0.5, Burst: 30}}, {"127.0.0.1:0", false, 60, public},
	} {
		config := serving.Config{ListenConfig: serving.ListenConfig{Listen: c.listen, InsecureHTTP: c.proxy}, Logins: c.limit}
		if got := config.Failures(); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// Who guesses at a service waits.
func TestServeGuesses(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nauth: true\nlogin_limit: 2\n")
	for n, want := range []int{401, 401, 429, 429} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+[]string{"/v2/", "/api/v1/heads"}[n%2], nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth("guesser", "mlp_aaaaaaaaaaaaaaaa_x")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || want == 429 && response.Header.Get("Retry-After") == "" {
			t.Errorf("%d: %s, want %d", n, response.Status, want)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}
