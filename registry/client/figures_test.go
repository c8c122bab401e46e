package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// A service that is older than per-case figures gets the evidence without them.
func TestAttachToAnOlderService(t *testing.T) {
	t.Parallel()
	var a attempts
	c := speaker(t, a.handle(func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusBadRequest)
			detail := `request body: json: unknown field \"figures\"`
			fmt.Fprintf(w, `{"code":"invalid","detail":"%s","errors":[{"code":"invalid","detail":"%s"}]}`, detail, detail)
			return
		}
		fmt.Fprintf(w, `{"bundle":%q}`, release())
	}))
	got, err := c.Attach(t.Context(), registry.Attachment{Environment: "staging", Model: "digits", Bundle: []byte("b"), Figures: []byte("f")})
	keys, bodies := a.seen()
	if err != nil || got != release() || len(bodies) != 2 || !strings.Contains(bodies[0], `"figures"`) ||
		strings.Contains(bodies[1], `"figures"`) || keys[0] == keys[1] {
		t.Errorf("%s, error %v, after %q with keys %q; want a second request without figures, and another key", got, err, bodies, keys)
	}
}

// What a service refuses for another reason is not sent again.
func TestAttachRefused(t *testing.T) {
	t.Parallel()
	var a attempts
	c := speaker(t, a.handle(func(_ int, w http.ResponseWriter) { say(w, http.StatusBadRequest, registry.CodeInvalid) }))
	_, err := c.Attach(t.Context(), registry.Attachment{Environment: "staging", Model: "digits", Bundle: []byte("b"), Figures: []byte("f")})
	if _, bodies := a.seen(); registry.CodeOf(err) != registry.CodeInvalid || len(bodies) != 1 {
		t.Errorf("error %v after %d requests, want one of code invalid after 1", err, len(bodies))
	}
}
