package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// noContent is content that has nothing.
type noContent struct{ storage.Content }

func (noContent) Release(context.Context, string, string) (artifact.Release, error) {
	return artifact.Release{Digest: release(), Model: "vision/letters"}, nil
}

func release() registry.Digest { return digest.FromString("release") }

// speaker is a client of a server that answers everything in one way.
func speaker(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL, Content: noContent{}, HTTP: server.Client(), Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calls are all that a client can be asked. Those that only read a list are apart: an
// empty list is an answer.
func calls(c *client.Client) (act, list map[string]func(ctx context.Context) error) {
	const model = "vision/digits"
	act = map[string]func(ctx context.Context) error{
		"environments": func(ctx context.Context) error { _, err := c.Environments(ctx); return err },
		"resolve": func(ctx context.Context) error {
			_, err := c.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: model})
			return err
		},
		"publish": func(ctx context.Context) error {
			_, err := c.Publish(ctx, api.Publication{Model: model, Release: release()})
			return err
		},
		"attach": func(ctx context.Context) error {
			_, err := c.Attach(ctx, api.Attachment{Model: model})
			return err
		},
		"promote": func(ctx context.Context) error {
			_, err := c.Promote(ctx, api.PromoteRequest{Model: model})
			return err
		},
		"rollback": func(ctx context.Context) error {
			_, err := c.Rollback(ctx, api.RollbackRequest{Model: model})
			return err
		},
		"release": func(ctx context.Context) error { _, err := c.Release(ctx, "staging", model, "1.0.0"); return err },
	}
	list = map[string]func(ctx context.Context) error{
		"heads": func(ctx context.Context) error { _, err := c.Heads(ctx, "", ""); return err },
		"history": func(ctx context.Context) error {
			_, err := c.History(ctx, history.HistoryQuery{After: 3, Descending: true})
			return err
		},
		"claims": func(ctx context.Context) error {
			_, _, err := c.Claims(ctx, "staging", artifact.Release{Model: model})
			return err
		},
		"hold": func(ctx context.Context) error { return c.SetHold(ctx, "prod", model, "why") },
		"release hold": func(ctx context.Context) error {
			return c.ReleaseHold(ctx, api.HoldRelease{Environment: "prod", Model: model, Reason: "why"})
		},
	}
	return act, list
}

// every asks everything and wants errors of one code.
func every(t *testing.T, subject string, c *client.Client, code registry.Code, exit int, lists bool) {
	t.Helper()
	act, list := calls(c)
	if !lists {
		list = nil
	}
	for _, group := range []map[string]func(ctx context.Context) error{act, list} {
		for name, call := range group {
			if err := call(t.Context()); err == nil || registry.CodeOf(err) != code || registry.ExitCode(err) != exit {
				t.Errorf("%s of %s: error %v (%s, exit code %d), want %s and %d", name, subject, err, registry.CodeOf(err), registry.ExitCode(err), code, exit)
			}
		}
	}
}

// What is no service, or one whose answers say nothing, is an error and never an answer.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		lists   bool
	}{
		"web site":      {say(200, "<html>welcome</html>"), false},
		"nothing":       {say(200, ""), false},
		"empty object":  {say(200, "{}"), false},
		"null":          {say(200, "null"), false},
		"other object":  {say(200, `{"environments":[{"name":"A B"}],"release":"sha256:x","bundle":7,"engine":{"digest":"x"}}`), false},
		"half":          {say(200, `{"registry":"local","environ`), false},
		"not found":     {say(404, "404 page not found"), true},
		"other problem": {say(404, `{"type":"about:blank","title":"Not Found","status":404}`), true},
		"bad gateway":   {say(502, "<html>"), true},
		"redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, true},
		"not modified":  {say(304, ""), true},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{}"))
		}, true},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"too deep": {say(200, strings.Repeat("[", 100_000)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit := registry.ExitFailed
			if slices.Contains([]string{"bad gateway", "breaks off", "hangs up"}, name) {
				exit = registry.ExitAgain
			}
			every(t, name, speaker(t, c.handler), registry.CodeUnavailable, exit, c.lists)
		})
	}
}

// A redirect is not followed: what is sent is for the service that was named.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var there atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { there.Add(1) }))
	t.Cleanup(elsewhere.Close)
	c := speaker(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	every(t, "redirect", c, registry.CodeUnavailable, registry.ExitFailed, true)
	if n := there.Load(); n != 0 {
		t.Errorf("%d requests were sent elsewhere", n)
	}
}

func TestDeadServer(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	listener.Close()
	c, err := client.New(client.Config{URL: url, Content: noContent{}, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	every(t, "no server", c, registry.CodeUnavailable, registry.ExitAgain, true)
	if _, err := c.Environments(t.Context()); !strings.Contains(err.Error(), "no response from "+url) {
		t.Errorf("the error is %v, and does not name %s", err, url)
	}
}

// A context that ends is an error of its own, before the answer and within it.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]bool{"before the answer": false, "within the answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			ended := make(chan struct{})
			c := speaker(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // until then a server does not see that the client is gone
				if begin {
					_, _ = w.Write([]byte("{"))
					_ = http.NewResponseController(w).Flush()
				}
				asked <- struct{}{}
				select {
				case <-ended:
				case <-r.Context().Done():
				}
			})
			t.Cleanup(func() { close(ended) })
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			if _, err := c.Promote(ctx, api.PromoteRequest{Model: "digits"}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want context.Canceled", err)
			}
			if _, err := c.Heads(ctx, "", ""); !errors.Is(err, context.Canceled) {
				t.Errorf("after it: error %v, want context.Canceled", err)
			}
		})
	}
}

// A name that no model can have leads nowhere, least of all to another path.
func TestNamesOfNoModel(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := speaker(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, model := range []string{"", "../environments", "a/../../heads", "a?b", "a#b", "A"} {
		if _, err := c.Promote(t.Context(), api.PromoteRequest{Model: model}); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("promote %q: error %v, want CodeNotFound", model, err)
		}
		if _, err := c.Release(t.Context(), "prod", model, ""); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("release of %q: error %v, want CodeNotFound", model, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}

// The service says which release is meant; what it is comes from the content.
func TestReleaseIsCheckedAgainstContent(t *testing.T) {
	t.Parallel()
	c := speaker(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"digest":"` + string(release()) + `","model":"vision/digits"}`))
	})
	if _, err := c.Release(t.Context(), "staging", "vision/digits", ""); registry.CodeOf(err) != registry.CodeTrust {
		t.Errorf("a release of another model: error %v, want CodeTrust", err)
	}
	other := string(digest.FromString("other"))
	if _, err := c.Release(t.Context(), "staging", "vision/letters", other); registry.CodeOf(err) != registry.CodeDigest {
		t.Errorf("another release than asked for: error %v, want CodeDigest", err)
	}
	if r, err := c.Release(t.Context(), "staging", "vision/letters", string(release())); err != nil || r.Digest != release() {
		t.Errorf("got %+v, error %v", r, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "127.0.0.1:5080", "localhost", "ftp://example.com", "http://", "http://user@example.com", "http://example.com/registry",
		"http://example.com?x=y", "http://example.com#x", "http://%zz", "http:///api",
	} {
		if c, err := client.New(client.Config{URL: url, Content: noContent{}}); c != nil || registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("URL %q: %v, error %v, want CodeInvalid", url, c, err)
		}
	}
	if c, err := client.New(client.Config{URL: "http://example.com"}); c != nil || registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("no content: %v, error %v, want CodeInvalid", c, err)
	}
	for _, url := range []string{"http://example.com", "https://example.com/", "http://127.0.0.1:5080", "http://[::1]:5080"} {
		if _, err := client.New(client.Config{URL: url, Content: noContent{}}); err != nil {
			t.Errorf("URL %q: %v", url, err)
		}
	}
}
