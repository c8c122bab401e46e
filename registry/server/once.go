package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// How long responses to requests with a key are kept, and how long a claim lasts without
// renewal. A replica that crashed might still be working until then.
const (
	keepAnswers = 24 * time.Hour
	claimTime   = 30 * time.Second
)

// keyPattern matches valid keys.
var keyPattern = regexp.MustCompile(`^[!-~]{1,255}$`)

// keyOf reads Idempotency-Key: a text, with or without quotes; empty if the header is missing.
// Errors: CodeInvalid.
func keyOf(header http.Header) (string, error) {
	values := header.Values(rest.IdempotencyKey)
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		key, ok = strings.CutSuffix(quoted, `"`)
		if !ok {
			key = ""
		}
	}
	if len(values) > 1 || !keyPattern.MatchString(key) {
		return "", registry.Errorf(registry.CodeInvalid, "%s: want one key of 1 to 255 visible ASCII characters",
			rest.IdempotencyKey)
	}
	return key, nil
}

// once lets a route answer a request with a key, or repeats the saved response. It finishes a
// request with a key even if the client disconnects.
func once(s server, route route, r *request) (*response, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return nil, err
	}
	if key == "" || !route.Possible(r.Context()) { // nothing is stored for whom the registry is going to refuse
		return route.handle(s, r)
	}
	body, err := raw(r)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	caller, _ := storage.PrincipalOf(r.Context())
	grants, err := json.Marshal(caller.Grants)
	if err != nil {
		return nil, err
	}
	// An issuer may give one name to jobs with different permissions, and a job must not get the saved response of
	// another. What is kept is counted by name.
	claim := storage.KeyClaim{
		Principal: caller.Name, Key: key + " " + string(digest.FromBytes(grants)), Claimant: rand.Text(),
		Request: digest.FromString(r.Method + " " + r.URL.Path + "\n" + string(body)),
		Lasting: claimTime,
	}
	kept, err := s.Idempotency.ClaimKey(r.Context(), claim)
	if err != nil {
		return nil, keyRefusal(err)
	}
	if kept != nil {
		a := &response{status: kept.Status, kind: kept.Type, body: kept.Body}
		return a.with("Idempotency-Replayed", "true"), nil
	}
	r.Request = r.WithContext(context.WithoutCancel(r.Context()))
	defer renewClaim(r.Context(), s, claim)()
	return keepAnswer(s, r, claim, route)
}

// keepAnswer answers a request and saves the response. It does not save errors: they change nothing, so a repeated
// request is decided again.
func keepAnswer(s server, r *request, claim storage.KeyClaim, route route) (*response, error) {
	a, err := route.handle(s, r)
	if err != nil {
		a = problemOf(s.Logger, r.Request, err)
	}
	if a.status >= http.StatusBadRequest {
		if err := s.Idempotency.FreeKey(r.Context(), claim); err != nil {
			s.Logger.ErrorContext(r.Context(), "idempotency key", "request", requestid.Of(r.Context()), "error", err)
		}
		return a, nil
	}
	claim.Lasting = keepAnswers
	kept := storage.KeptAnswer{Status: a.status, Type: a.kind, Body: a.body}
	if err := s.Idempotency.SaveAnswer(r.Context(), claim, kept); err != nil {
		// The change is done and the client must learn of it, although a retry would repeat it.
		s.Logger.ErrorContext(r.Context(), "idempotency key", "request", requestid.Of(r.Context()), "error", err)
	}
	return a, nil
}

// renewClaim renews a claim until stop is called.
func renewClaim(ctx context.Context, s server, claim storage.KeyClaim) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(claimTime / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := s.Idempotency.RenewKey(ctx, claim); err != nil && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "idempotency key", "request", requestid.Of(ctx), "error", err)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// keyRefusal sets the HTTP status of an error about a key.
func keyRefusal(err error) error {
	switch registry.CodeOf(err) {
	case registry.CodeInvalid:
		return refusal{error: err, status: http.StatusUnprocessableEntity}
	case registry.CodeConflict:
		return refusal{error: err, header: http.Header{"Retry-After": {"1"}}}
	}
	return err
}
