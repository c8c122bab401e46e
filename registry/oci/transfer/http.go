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

// Transport repeats requests that a broken connection, or a registry that is busy, left
// without an answer. Those of an upload that is under way it leaves alone: what became of
// them is asked first. A nil base is http.DefaultTransport.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	policy := retry.GenericPolicy{Retryable: worthAnother, Backoff: retry.DefaultBackoff, MinWait: 50 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: 5}
	return &transport{base: base, patient: &retry.Transport{Base: base, Policy: func() retry.Policy { return &policy }}}
}

type transport struct{ base, patient http.RoundTripper }

// RoundTrip sends a request, once or more often.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(onceKey{}) != nil {
		return t.base.RoundTrip(req)
	}
	return t.patient.RoundTrip(req)
}

// onceKey marks the context of a request that must not be repeated blindly.
type onceKey struct{}

func once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// worthAnother adds to oras-go's rule a connection that ended without any answer, and
// takes from it what the registry will never do.
func worthAnother(resp *http.Response, err error) (bool, error) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return true, nil
	case err == nil && resp.StatusCode == http.StatusNotImplemented:
		return false, nil
	}
	return retry.DefaultPredicate(resp, err)
}

// verdict is what an error means for an upload. The zero verdict ends it.
type verdict int

const (
	fatal  verdict = iota
	again          // another try may do
	gone           // the registry has forgotten the upload, or garbled it
	unable         // the registry does not take it in this way
)

// judge says what an error means.
func judge(err error) verdict {
	var response *errcode.ErrorResponse
	var own *registry.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &response):
		return judgeStatus(response.StatusCode)
	case errors.As(err, &own), errors.As(err, &certificate), errors.Is(err, auth.ErrBasicCredentialNotFound),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fatal
	}
	return again // of the network, in one of its many ways
}

func judgeStatus(status int) verdict {
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

// problem is the error that a response stands for. It closes the response.
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

// pause waits after a failure, the longer the more there were.
func (r *Repository) pause(ctx context.Context, failures int) error {
	longest := min(r.options.Pause<<min(max(failures-1, 0), 20), maxPause)
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1)) //nolint:gosec // it decides nothing but when
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
