package jobtoken_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer/jobtoken"
)

// job gives variables of a job whose tokens come from a handler.
func job(t *testing.T, h http.HandlerFunc) func(string) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return variables(server.URL+"/token?api-version=2.0", "of-the-job")
}

func variables(address, secret string) func(string) string {
	return func(name string) string {
		return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": address, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": secret}[name]
	}
}

// jwt is a token without a signature that counts.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string // in turn; a number is a status without a body
		want    string   // in the error
		exit    int
	}{
		"a token":                {[]string{`{"count":1,"value":"t"}`}, "", 0},
		"a busy minute":          {[]string{"503", "429", `{"value":"t"}`}, "", 0},
		"a bad hour":             {[]string{"500", "500", "500"}, "answers 500", registry.ExitAgain},
		"no right":               {[]string{"403"}, "answers 403 Forbidden", registry.ExitFailed},
		"a redirection":          {[]string{"302"}, "answers 302", registry.ExitFailed},
		"no token":               {[]string{`{}`}, "without a token", registry.ExitFailed},
		"an answer without end":  {[]string{strings.Repeat(" ", 1<<17) + `{"value":"t"}`}, "without a token", registry.ExitFailed},
		"the secret in an error": {[]string{"400 for of-the-job"}, `400 Bad Request: "for TOKEN"`, registry.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			getenv := job(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer of-the-job" || r.URL.RawQuery != "api-version=2.0&audience=https%3A%2F%2Fa.example%3A1" {
					t.Errorf("got %s with %q", r.URL, r.Header.Get("Authorization"))
				}
				answer := c.answers[asked.Add(1)-1]
				var status int
				if n, _ := fmt.Sscanf(answer, "%d", &status); n == 1 {
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(status)
					answer = strings.TrimSpace(answer[3:])
				}
				fmt.Fprint(w, answer)
			})
			got, err := jobtoken.GitHub(t.Context(), getenv, "https://a.example:1")
			if c.want == "" && (err != nil || got != "t") {
				t.Errorf("got %q and %v, want the token", got, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || registry.ExitCode(err) != c.exit) {
				t.Errorf("got %v with exit code %d, want %q with %d", err, registry.ExitCode(err), c.want, c.exit)
			}
			if err != nil && strings.Contains(err.Error(), "of-the-job") {
				t.Errorf("the error has the secret: %v", err)
			}
			if int(asked.Load()) != len(c.answers) {
				t.Errorf("asked %d times, want %d", asked.Load(), len(c.answers))
			}
		})
	}
	for name, getenv := range map[string]func(string) string{
		"no permission": variables("", ""), "half of it": variables("https://a.example/", ""), "in the clear": variables("http://a.example/", "x"),
	} {
		if _, err := jobtoken.GitHub(t.Context(), getenv, "a"); registry.ExitCode(err) != registry.ExitFailed {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

// A build is longer than a token is valid: it is asked for again when half of its time is over, and not before.
func TestSourceAsksAgain(t *testing.T) {
	t.Parallel()
	began := time.Now()
	now, asked := began, 0
	getenv := job(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprintf(w, `{"value":%q}`, jwt(fmt.Sprintf(`{"exp":%d,"n":%d}`, now.Add(10*time.Minute).Unix(), asked)))
	})
	s := jobtoken.Source{Audience: "a", Getenv: getenv, Now: func() time.Time { return now }}
	for _, c := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {4 * time.Minute, 1}, {6 * time.Minute, 2}, {10 * time.Minute, 2}, {3 * time.Hour, 3}} {
		now = began.Add(c.after)
		_, err := s.Token(t.Context())
		if err != nil || asked != c.asked {
			t.Errorf("after %v: asked %d times, error %v; want %d times", c.after, asked, err, c.asked)
		}
	}
	strange := jobtoken.Source{Audience: "a", Getenv: job(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"value":"secret-text"}`) })}
	if _, err := strange.Token(t.Context()); err == nil || strings.Contains(err.Error(), "secret-text") {
		t.Errorf("got %v, want a refusal without the text", err)
	}
}

// A build does not fail while GitHub does not answer and the last token is still valid.
func TestSourceOutlivesOutages(t *testing.T) {
	t.Parallel()
	began := time.Now()
	now, down := began, false
	getenv := job(t, func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"value":%q}`, jwt(fmt.Sprintf(`{"exp":%d}`, began.Add(10*time.Minute).Unix())))
	})
	s := jobtoken.Source{Audience: "a", Getenv: getenv, Now: func() time.Time { return now }}
	first, err := s.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	down, now = true, began.Add(6*time.Minute)
	if got, err := s.Token(t.Context()); err != nil || got != first {
		t.Errorf("while it is valid: got another token or error %v, want the first token", err)
	}
	now = began.Add(10 * time.Minute)
	if _, err := s.Token(t.Context()); registry.ExitCode(err) != registry.ExitAgain {
		t.Errorf("when it expired: got error %v, want one to try again after", err)
	}
}
