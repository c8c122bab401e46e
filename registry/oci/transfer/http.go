package transfer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"mlpromote.dev/mlpromote/registry"
)

// Transport repeats requests that got no response because the connection broke or the registry
// was busy. It does not repeat requests of an upload in progress: their result must be queried
// first. A nil base is http.DefaultTransport.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	policy := retry.GenericPolicy{Retryable: worthAnother, Backoff: retry.DefaultBackoff,
		MinWait: 50 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: 5}
	return &transport{base: base, patient: &retry.Transport{Base: base, Policy: func() retry.Policy { return &policy }}}
}

type transport struct{ base, patient http.RoundTripper }

// RoundTrip sends a request, possibly several times.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(onceKey{}) != nil {
		return t.base.RoundTrip(req)
	}
	return t.patient.RoundTrip(req)
}

// onceKey marks the context of a request that must not be repeated without a check.
type onceKey struct{}

func withoutRetry(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, true)
}

// worthAnother extends oras-go's rule to connections that ended without any response, and
// excludes requests that the registry will never accept.
func worthAnother(resp *http.Response, err error) (bool, error) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return true, nil
	case err == nil && resp.StatusCode == http.StatusNotImplemented:
		return false, nil
	}
	return retry.DefaultPredicate(resp, err)
}

// verdict is the effect of an error on an upload. The zero verdict ends the upload.
type verdict int

const (
	fatal  verdict = iota
	again          // a retry may succeed
	gone           // the registry has lost or corrupted the upload
	unable         // the registry does not support this kind of upload
)

// classify returns the verdict on an error.
func classify(err error) verdict {
	var response *errcode.ErrorResponse
	var own *registry.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &response):
		return classifyStatus(response.StatusCode)
	case errors.As(err, &own), errors.As(err, &certificate), errors.Is(err, auth.ErrBasicCredentialNotFound),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fatal
	}
	return again // the network fails with many kinds of errors
}

func classifyStatus(status int) verdict {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fatal
	case http.StatusNotFound, http.StatusGone:
		return gone
	case http.StatusRequestedRangeNotSatisfiable, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return again
	case http.StatusNotImplemented:
		return unable
	}
	if status >= http.StatusInternalServerError {
		return again
	}
	return unable
}

// problem returns the error for a response, and closes the response.
func problem(resp *http.Response) error {
	defer resp.Body.Close()
	const maxBody = 64 << 10
	said := errcode.ErrorResponse{Method: resp.Request.Method, URL: resp.Request.URL, StatusCode: resp.StatusCode}
	var body struct {
		Errors errcode.Errors `json:"errors"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&body) == nil {
		said.Errors = body.Errors
	}
	return &said
}

// pause waits after a failure, longer after each further failure.
func (r *Repository) pause(ctx context.Context, failures int) error {
	longest := min(r.options.Pause<<min(max(failures-1, 0), 20), maxPause)
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1)) //nolint:gosec // jitter needs no secret randomness
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
