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
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// How long answers to requests with a key are kept, and how long a claim lives that
// nobody renews: until then a replica that died may still be at work.
const (
	keepAnswers = 24 * time.Hour
	claimTime   = 30 * time.Second
)

// keyPattern is what a key may be.
var keyPattern = regexp.MustCompile(`^[!-~]{1,255}$`)

// keyOf reads Idempotency-Key: a text, with or without quotes; empty where there is none.
// Errors: CodeInvalid.
func keyOf(header http.Header) (string, error) {
	values := header.Values(wire.IdempotencyKey)
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
		return "", registry.Errorf(registry.CodeInvalid, "%s: want one key of 1 to 255 visible ASCII characters", wire.IdempotencyKey)
	}
	return key, nil
}

// once lets a route answer a request that has a key, unless it did already: then the
// answer is what it was. A request with a key is finished even if its client goes away.
func (s server) once(route route, r *request) (*response, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return route.handle(s, r)
	}
	body, err := raw(r)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	whose, err := keyHolder(r.Context())
	if err != nil {
		return nil, err
	}
	claim := registry.KeyClaim{
		Principal: whose, Key: key, Claimant: rand.Text(),
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
	defer s.renewing(r.Context(), claim)()
	return s.keep(r, claim, route)
}

// keyHolder is who has keys to himself: a principal with what it may do. An issuer may give one
// name to jobs that may do different things; what one of them was answered, or refused, is no
// answer to the others.
func keyHolder(ctx context.Context) (string, error) {
	p, _ := registry.PrincipalOf(ctx)
	grants, err := json.Marshal(p.Grants)
	return p.Name + " " + string(digest.FromBytes(grants)), err
}

// keep answers a request and keeps the answer. What failed for a reason of ours is not
// kept: it may be tried again.
func (s server) keep(r *request, claim registry.KeyClaim, route route) (*response, error) {
	a, err := route.handle(s, r)
	if err != nil {
		a = s.problem(r.Request, err)
	}
	if a.status >= http.StatusInternalServerError {
		if err := s.Idempotency.FreeKey(r.Context(), claim); err != nil {
			s.Logger.ErrorContext(r.Context(), "idempotency key", "request", requestid.Of(r.Context()), "error", err)
		}
		return a, nil
	}
	claim.Lasting = keepAnswers
	if err := s.Idempotency.SaveAnswer(r.Context(), claim, registry.KeptAnswer{Status: a.status, Type: a.kind, Body: a.body}); err != nil {
		// What was done is done, and the client shall know; the next try may not.
		s.Logger.ErrorContext(r.Context(), "idempotency key", "request", requestid.Of(r.Context()), "error", err)
	}
	return a, nil
}

// renewing keeps a claim alive until what it gives is called.
func (s server) renewing(ctx context.Context, claim registry.KeyClaim) (stop func()) {
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

// keyRefusal gives what is wrong with a key its status.
func keyRefusal(err error) error {
	switch registry.CodeOf(err) {
	case registry.CodeInvalid:
		return refusal{error: err, status: http.StatusUnprocessableEntity}
	case registry.CodeConflict:
		return refusal{error: err, header: http.Header{"Retry-After": {"1"}}}
	}
	return err
}
