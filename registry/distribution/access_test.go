package distribution_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*distribution.Config){
		"Blobs":     func(c *distribution.Config) { c.Blobs = nil },
		"Refs":      func(c *distribution.Config) { c.Refs = nil },
		"Deleter":   func(c *distribution.Config) { c.Deleter = nil },
		"Uploads":   func(c *distribution.Config) { c.Uploads = nil },
		"Authorize": func(c *distribution.Config) { c.Authorize = nil },
	} {
		c := memory(t)
		take(&c)
		if h, err := distribution.New(c); h != nil || registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got %v, %v; want CodeInvalid", name, h, err)
		}
	}
}

// requests is one request for every row of the protocol, and what it takes.
func requests() map[string]distribution.Access {
	d := digest.FromString("x").String()
	pull := distribution.Access{Repository: repo, Action: distribution.Pull}
	push := distribution.Access{Repository: repo, Action: distribution.Push}
	remove := distribution.Access{Repository: repo, Action: distribution.Delete}
	return map[string]distribution.Access{
		"GET /v2/":                               {Action: distribution.Pull},
		"GET /v2/_catalog":                       {Action: distribution.List},
		"GET " + at(repo, "blobs", d):            pull,
		"HEAD " + at(repo, "blobs", d):           pull,
		"DELETE " + at(repo, "blobs", d):         remove,
		"POST " + at(repo, "blobs/uploads/"):     push,
		"POST " + at(repo, "blobs/uploads"):      push,
		"GET " + at(repo, "blobs/uploads/x"):     push,
		"PATCH " + at(repo, "blobs/uploads/x"):   push,
		"PUT " + at(repo, "blobs/uploads/x"):     push,
		"GET " + at(repo, "manifests/x"):         pull,
		"HEAD " + at(repo, "manifests", d):       pull,
		"PUT " + at(repo, "manifests/x"):         push,
		"DELETE " + at(repo, "manifests", d):     remove,
		"DELETE " + at(repo, "manifests/x"):      remove,
		"GET " + at(repo, "tags/list"):           pull,
		"GET " + at(repo, "referrers", d):        pull,
		"GET " + at(repo, "referrers/malformed"): pull,
	}
}

// Every request asks first, for what it is about to do.
func TestAuthorizeIsAsked(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []distribution.Access
	c := memory(t)
	c.Authorize = func(_ context.Context, a distribution.Access) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a)
		return registry.Errorf(registry.CodeForbidden, "not allowed")
	}
	w := listen(t, c)
	for request, want := range requests() {
		method, path, _ := strings.Cut(request, " ")
		asked = nil
		a := w.do(t, method, path, nil)
		if a.status != 403 || (method != "HEAD" && a.code != "DENIED") {
			t.Errorf("%s: got %d %s, want 403 DENIED", request, a.status, a.code)
		}
		if diff := cmp.Diff([]distribution.Access{want}, asked); diff != "" {
			t.Errorf("%s: difference in what was asked (-want +got):\n%s", request, diff)
		}
	}
}

func TestAuthorizeErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		code   string
		shown  bool
	}{
		{registry.Errorf(registry.CodeUnauthenticated, "say who you are"), 401, "UNAUTHORIZED", true},
		{registry.Errorf(registry.CodePolicy, "promote instead"), 403, "DENIED", true},
		{registry.Errorf(registry.CodeForbidden, "not this token"), 403, "DENIED", true},
		{registry.Errorf(registry.CodeNotFound, "no environment stagin"), 404, "NAME_UNKNOWN", true},
		{registry.Errorf(registry.CodeUnavailable, "disk /srv is full"), 503, "TOOMANYREQUESTS", false},
		{registry.Errorf(registry.CodeFull, "disk /srv is full"), 507, "DENIED", false},
		{errors.New("password is 12345"), 500, "UNSUPPORTED", false},
	} {
		var log bytes.Buffer
		c := memory(t)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Authorize = func(context.Context, distribution.Access) error { return tc.err }
		w := listen(t, c)
		a := w.do(t, "GET", at(repo, "tags/list"), nil).want(t, tc.status, tc.code)
		<-w.served
		if strings.Contains(string(a.body), tc.err.Error()) != tc.shown {
			t.Errorf("%v: the caller sees %s", tc.err, a.body)
		}
		if !tc.shown && !strings.Contains(log.String(), tc.err.Error()) {
			t.Errorf("%v: the log says %q", tc.err, log.String())
		}
		if (a.header.Get("WWW-Authenticate") != "") != (tc.status == 401) {
			t.Errorf("%v: WWW-Authenticate is %q", tc.err, a.header.Get("WWW-Authenticate"))
		}
	}
}

func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	d := digest.FromString("x").String()
	for request, allowed := range map[string]string{
		"POST /v2/":                           "GET, HEAD",
		"POST /v2/_catalog":                   "GET",
		"PUT " + at(repo, "blobs", d):         "DELETE, GET, HEAD",
		"GET " + at(repo, "blobs/uploads/"):   "POST",
		"POST " + at(repo, "blobs/uploads/x"): "DELETE, GET, PATCH, PUT",
		"POST " + at(repo, "manifests/x"):     "DELETE, GET, HEAD, PUT",
		"DELETE " + at(repo, "tags/list"):     "GET",
		"PUT " + at(repo, "referrers", d):     "GET",
	} {
		method, path, _ := strings.Cut(request, " ")
		w.do(t, method, path, nil).want(t, 405, "UNSUPPORTED").wantHeader(t, "Allow", allowed)
	}
}
