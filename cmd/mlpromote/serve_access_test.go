package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

func TestEntrance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    entrance
		says string // empty: it is good
	}{
		"loopback":             {entrance{listen: "127.0.0.1:0"}, ""},
		"loopback, version 6":  {entrance{listen: "[::1]:0"}, ""},
		"TLS":                  {entrance{listen: ":443", tlsCert: "c", tlsKey: "k"}, ""},
		"behind a proxy":       {entrance{listen: "10.0.0.1:80", insecureHTTP: true, url: "https://registry.example.com/"}, ""},
		"in the clear":         {entrance{listen: "0.0.0.0:80"}, "others reach this address"},
		"all addresses":        {entrance{listen: ":80", auth: true}, "others reach this address"},
		"a name":               {entrance{listen: "registry.example.com:80"}, "others reach this address"},
		"a proxy of no name":   {entrance{listen: ":80", insecureHTTP: true}, "--url is missing"},
		"half of TLS":          {entrance{listen: ":443", tlsCert: "c"}, "want both, or none"},
		"the other half":       {entrance{listen: "127.0.0.1:0", tlsKey: "k"}, "want both, or none"},
		"no such port":         {entrance{listen: "127.0.0.1:99999"}, "want HOST:PORT"},
		"no port":              {entrance{listen: "127.0.0.1"}, "want HOST:PORT"},
		"a URL with a path":    {entrance{listen: "127.0.0.1:0", url: "https://registry.example.com/x"}, "--url"},
		"a URL without scheme": {entrance{listen: "127.0.0.1:0", url: "registry.example.com"}, "--url"},
	} {
		err := c.e.check()
		if c.says == "" && err != nil || c.says != "" && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		recorder := httptest.NewRecorder()
		secure(http.NotFoundHandler(), strict).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"Strict-Transport-Security": map[bool]string{true: "max-age=31536000"}[strict],
		} {
			if got := recorder.Header().Get(key); got != want {
				t.Errorf("with TLS %t: %s is %q, want %q", strict, key, got, want)
			}
		}
	}
	for url, want := range map[string]bool{"": false, "http://registry.example.com": false, "https://registry.example.com": true} {
		if e := (entrance{url: url}); e.strictTransport() != want {
			t.Errorf("%q: %t", url, !want)
		}
	}
}

// An open door lets everybody in who came by a name of this machine, and nobody else.
func TestOpenDoor(t *testing.T) {
	t.Parallel()
	var d door
	for name, h := range map[string]func(http.Handler) http.Handler{"API": d.api, "registry": d.registry} {
		for host, status := range map[string]int{"127.0.0.1:5080": http.StatusOK, "localhost": http.StatusOK, "registry.example.com": http.StatusMisdirectedRequest} {
			recorder := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil)
			d.outside(h(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				p, _ := registry.PrincipalOf(r.Context())
				if err := access.Allow(r.Context(), registry.PermissionAdminister, "", ""); err != nil || p.Name != "anonymous" {
					t.Errorf("%s: %s may not administer: %v", name, p.Name, err)
				}
			}))).ServeHTTP(recorder, r)
			if recorder.Code != status {
				t.Errorf("%s at %s: %d, want %d", name, host, recorder.Code, status)
			}
		}
	}
}

// An action that comes later takes what nobody has.
func TestUnknownActionIsNobodys(t *testing.T) {
	t.Parallel()
	ctx := registry.WithPrincipal(t.Context(), everybody())
	if err := (access.Repositories{}).Authorize(ctx, "staging/x", permissionFor("fly")); registry.CodeOf(err) != registry.CodePolicy {
		t.Errorf("error %v, want CodePolicy", err)
	}
}

// A service without a key that opens tells its operator when it starts.
func TestServiceTriesItsKey(t *testing.T) {
	t.Parallel()
	good := t.TempDir()
	if _, err := keyfile.Generate(good, signer.LocalKey, nil); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{good: "", t.TempDir(): "there is no key"} {
		var log bytes.Buffer
		s := &serving{logger: slog.New(slog.NewTextHandler(&log, nil))}
		s.tryKey(t.Context(), &instance{keys: (&app{keys: dir, getenv: func(string) string { return "" }}).keyring()})
		if says == "" && log.Len() > 0 || !strings.Contains(log.String(), says) {
			t.Errorf("the log has %q, want %q", log.String(), says)
		}
	}
}

// The token goes to the service that was named, and to nobody whom it points to.
func TestAuthorizationOfVerbs(t *testing.T) {
	t.Parallel()
	var sent string
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Get("Authorization")
		return httptest.NewRecorder().Result(), nil
	})
	transport := &authorized{base: base, service: &url.URL{Scheme: "https", Host: "registry.example.com"}, authorization: "Bearer x"}
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
