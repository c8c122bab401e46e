package authn_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
)

// A page of another site can change nothing. Other clients are not affected.
func TestSite(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	site := authn.OriginCheck{
		Hosts: access.Hosts{Names: []string{"registry.example.com"}}, URL: "https://registry.example.com",
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	reached := 0
	h, err := site.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached++
		w.WriteHeader(http.StatusNoContent)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, host, header, value string
		says                        string // empty: the request passes
	}{
		"a client without a browser": {"POST", "127.0.0.1:5080", "", "", ""},
		"a read":                     {"GET", "localhost:5080", "", "", ""},
		"a link of another site":     {"GET", "127.0.0.1:5080", "Sec-Fetch-Site", "cross-site", ""},
		"a page of its own":          {"POST", "127.0.0.1:5080", "Sec-Fetch-Site", "same-origin", ""},
		"a typed address":            {"POST", "127.0.0.1:5080", "Sec-Fetch-Site", "none", ""},
		"its own, in old browsers":   {"PUT", "127.0.0.1:5080", "Origin", "http://127.0.0.1:5080", ""},
		"its URL behind a proxy":     {"POST", "127.0.0.1:5080", "Origin", "https://registry.example.com", ""},
		"its name":                   {"POST", "registry.example.com", "", "", ""},
		"another site":               {"POST", "127.0.0.1:5080", "Sec-Fetch-Site", "cross-site", "a page of another site"},
		"another port":               {"PUT", "127.0.0.1:5080", "Sec-Fetch-Site", "same-site", "a page of another site"},
		"an upload of another site":  {"PATCH", "127.0.0.1:5080", "Sec-Fetch-Site", "cross-site", "a page of another site"},
		"a deletion of another site": {"DELETE", "127.0.0.1:5080", "Sec-Fetch-Site", "cross-site", "a page of another site"},
		"another, in old browsers":   {"POST", "127.0.0.1:5080", "Origin", "https://evil.example", `page of another site, "https://evil.example"`},
		"a file, in old browsers":    {"POST", "127.0.0.1:5080", "Origin", "null", "a page of another site"},
		"a rebound name":             {"POST", "evil.example:5080", "Sec-Fetch-Site", "same-origin", `Host "evil.example:5080" is not a name of this service`},
		"a read with such a name":    {"GET", "evil.example:5080", "", "", "is not a name of this service"},
		"another address":            {"GET", "0.0.0.0:5080", "", "", "is not a name of this service"},
		"no name":                    {"GET", "", "", "", "is not a name of this service"},
	} {
		for _, path := range []string{"/v2/staging/x/blobs/uploads/", "/v2", "/api/v1/heads", "/metrics", "/"} {
			r := httptest.NewRequest(c.method, path, nil)
			r.Host = c.host
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			recorder := httptest.NewRecorder()
			before := reached
			h.ServeHTTP(recorder, r)
			if c.says == "" {
				if recorder.Code != http.StatusNoContent {
					t.Errorf("%s, %s: got %d %s, want it to pass", name, path, recorder.Code, recorder.Body)
				}
				continue
			}
			if reached != before || recorder.Code != http.StatusForbidden || !strings.Contains(unquoted(t, recorder), c.says) {
				t.Errorf("%s, %s: got %d %s, want 403 and %q", name, path, recorder.Code, recorder.Body, c.says)
			}
		}
	}
	if !strings.Contains(log.String(), "evil.example") {
		t.Errorf("the log has not the refused site: %s", log.String())
	}
	if _, err := (authn.OriginCheck{URL: "https://registry.example.com/path"}).Protect(h); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a URL with a path: error %v, want CodeInvalid", err)
	}
}

// unquoted returns the message of a refusal in either form.
func unquoted(t *testing.T, recorder *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Errors []struct{ Code, Message, Detail string }
		Code   registry.Code
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil || len(body.Errors) != 1 {
		t.Fatalf("%s: error %v, want one error", recorder.Body, err)
	}
	switch recorder.Header().Get("Content-Type") {
	case "application/json":
		if body.Errors[0].Code != "DENIED" {
			t.Errorf("code %q, want DENIED", body.Errors[0].Code)
		}
		return body.Errors[0].Message
	case "application/problem+json":
		if body.Code != registry.CodeForbidden {
			t.Errorf("code %q, want %s", body.Code, registry.CodeForbidden)
		}
		return body.Errors[0].Detail
	}
	t.Fatalf("%v %s is neither an error of the protocol nor a problem", recorder.Header(), recorder.Body)
	return ""
}
