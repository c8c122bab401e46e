package client_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
)

// attempts is the requests that a server got, and what it says to each.
type attempts struct {
	mu     sync.Mutex
	keys   []string
	bodies []string
}

func (a *attempts) handle(answer func(n int, w http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1000)
		n, _ := r.Body.Read(body)
		a.mu.Lock()
		a.keys, a.bodies = append(a.keys, r.Header.Get("Idempotency-Key")), append(a.bodies, string(body[:n]))
		count := len(a.keys)
		a.mu.Unlock()
		answer(count, w)
	}
}

// seen is the keys and bodies of the requests so far.
func (a *attempts) seen() (keys, bodies []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.keys), slices.Clone(a.bodies)
}

func say(w http.ResponseWriter, status int, code registry.Code, header ...string) {
	for i := 0; i < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"detail":"no","errors":[{"code":%q,"detail":"no"}]}`, code, code)
}

// sayLasting is what a service says that will say the same again.
func sayLasting(w http.ResponseWriter, status int, code registry.Code) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%q,"detail":"no","errors":[{"code":%q,"detail":"no","exit":1}]}`, code, code)
}

// What cannot be answered now is asked again, with the same key and body.
func TestRetries(t *testing.T) {
	t.Parallel()
	promoted := `{"release":"` + string(release()) + `"}`
	for name, fail := range map[string]func(w http.ResponseWriter){
		"unavailable": func(w http.ResponseWriter) { say(w, 503, registry.CodeUnavailable) },
		"proxy":       func(w http.ResponseWriter) { http.Error(w, "no backend", http.StatusServiceUnavailable) },
		"too many":    func(w http.ResponseWriter) { say(w, 429, registry.CodeUnavailable, "Retry-After", "1") },
		"at work":     func(w http.ResponseWriter) { say(w, 409, registry.CodeConflict, "Retry-After", "1") },
		"hangs up":    func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"breaks off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(len(promoted)))
			_, _ = w.Write([]byte(promoted[:10]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a attempts
			c := speaker(t, a.handle(func(n int, w http.ResponseWriter) {
				if n < 2 {
					fail(w)
					return
				}
				_, _ = w.Write([]byte(promoted))
			}))
			if _, err := c.Promote(t.Context(), api.PromoteRequest{Model: "digits", To: "prod"}); err != nil {
				t.Fatal(err)
			}
			keys, bodies := a.seen()
			if len(keys) != 2 || len(keys[0]) < 20 || keys[0] != keys[1] || !strings.Contains(bodies[0], "prod") || bodies[0] != bodies[1] {
				t.Errorf("keys %q, bodies %q", keys, bodies)
			}
			_, err := c.Promote(t.Context(), api.PromoteRequest{Model: "digits"})
			if again, _ := a.seen(); err != nil || again[2] == keys[0] {
				t.Errorf("another promotion has the key %q, error %v", again[2], err)
			}
		})
	}
}

// What will not change is not asked again, and nobody waits for ever.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail  func(w http.ResponseWriter)
		code  registry.Code
		times int
	}{
		"down for long":   {func(w http.ResponseWriter) { say(w, 503, registry.CodeUnavailable) }, registry.CodeUnavailable, 4},
		"come back later": {func(w http.ResponseWriter) { say(w, 503, registry.CodeUnavailable, "Retry-After", "3600") }, registry.CodeUnavailable, 1},
		"conflict":        {func(w http.ResponseWriter) { say(w, 409, registry.CodeConflict) }, registry.CodeConflict, 1},
		"lasting":         {func(w http.ResponseWriter) { sayLasting(w, 503, registry.CodeUnavailable) }, registry.CodeUnavailable, 1},
		"policy":          {func(w http.ResponseWriter) { say(w, 409, registry.CodePolicy) }, registry.CodePolicy, 1},
		"forbidden":       {func(w http.ResponseWriter) { say(w, 403, registry.CodeForbidden, "Retry-After", "1") }, registry.CodeForbidden, 1},
		"bug":             {func(w http.ResponseWriter) { say(w, 500, registry.CodeInternal) }, registry.CodeInternal, 1},
		"hangs up":        {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, registry.CodeUnavailable, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a attempts
			speak := speaker(t, a.handle(func(_ int, w http.ResponseWriter) { c.fail(w) }))
			_, err := speak.Promote(t.Context(), api.PromoteRequest{Model: "digits"})
			if keys, _ := a.seen(); registry.CodeOf(err) != c.code || len(keys) != c.times {
				t.Errorf("asked %d times, error %v; want %d times and %s", len(keys), err, c.times, c.code)
			}
		})
	}
}

// A list whose next page is the same one again has no end.
func TestPagesWithoutEnd(t *testing.T) {
	t.Parallel()
	c := speaker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `</api/v1/history?cursor=abc>; rel="next"`)
		_, _ = w.Write([]byte(`[]`))
	})
	if _, err := c.History(t.Context(), history.HistoryQuery{}); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
}

// A stream that breaks off is taken up where it was, and what is no event ends it.
func TestEvents(t *testing.T) {
	t.Parallel()
	event := func(n string) string { return "id: " + n + "\nevent: attach\ndata: {\"seq\":" + n + "}\n\n" }
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(text))
	}
	for name, c := range map[string]struct {
		answers []func(w http.ResponseWriter)
		want    int
		code    registry.Code
	}{
		"breaks off": {[]func(w http.ResponseWriter){
			func(w http.ResponseWriter) { stream(w, "retry: 1\n\n"+event("3")+": still here\n\n") },
			func(w http.ResponseWriter) { say(w, 503, registry.CodeUnavailable) },
			func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			func(w http.ResponseWriter) { stream(w, event("4")+event("9")+"data: {") },
			func(w http.ResponseWriter) { say(w, 403, registry.CodeForbidden) },
		}, 3, registry.CodeForbidden},
		"backwards": {[]func(w http.ResponseWriter){func(w http.ResponseWriter) { stream(w, event("5")+event("5")) }}, 1, registry.CodeInvalid},
		"lasting":   {[]func(w http.ResponseWriter){func(w http.ResponseWriter) { sayLasting(w, 503, registry.CodeUnavailable) }}, 0, registry.CodeUnavailable},
		"no events": {[]func(w http.ResponseWriter){func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }}, 0, registry.CodeInvalid},
		"too long":  {[]func(w http.ResponseWriter){func(w http.ResponseWriter) { stream(w, "data: "+strings.Repeat("x", 2<<20)) }}, 0, registry.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a attempts
			speak := speaker(t, a.handle(func(n int, w http.ResponseWriter) { c.answers[min(n, len(c.answers))-1](w) }))
			got := 0
			var last error
			for e, err := range speak.Events(t.Context(), history.HistoryQuery{After: 2}) {
				if last = err; err == nil {
					got++
				} else if e.Seq != 0 {
					t.Errorf("an event comes with the error %v", err)
				}
			}
			if got != c.want || registry.CodeOf(last) != c.code {
				t.Errorf("%d events and the error %v, want %d and %s", got, last, c.want, c.code)
			}
		})
	}
}

// What a service refuses as invalid is not sent again.
func TestAttachRefused(t *testing.T) {
	t.Parallel()
	var a attempts
	c := speaker(t, a.handle(func(_ int, w http.ResponseWriter) { say(w, http.StatusBadRequest, registry.CodeInvalid) }))
	_, err := c.Attach(t.Context(), api.Attachment{Environment: "staging", Model: "digits", Bundle: []byte("b"), Figures: []byte("f")})
	if _, bodies := a.seen(); registry.CodeOf(err) != registry.CodeInvalid || len(bodies) != 1 {
		t.Errorf("error %v after %d requests, want one of code invalid after 1", err, len(bodies))
	}
}
