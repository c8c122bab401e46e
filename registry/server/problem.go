package server

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
)

// refusal is an error with partial results or with its own HTTP status.
type refusal struct {
	error
	promotion  *api.Promotion
	resolution *api.Resolution
	status     int         // 0: that of the error's code
	header     http.Header // more headers, may be nil
}

func (r refusal) Unwrap() error { return r.error }

// problemOf returns the response for an error, and logs those that callers do not see. Only this function writes errors.
func problemOf(logger *slog.Logger, r *http.Request, err error) *response {
	var more refusal
	errors.As(err, &more)
	if more.error != nil {
		err = more.error
	}
	p := rest.NewProblem(err)
	if more.promotion != nil && more.promotion.Environment == "" { // it failed before a decision
		more.promotion = nil
	}
	p.Promotion, p.Resolution, p.RequestID = more.promotion, more.resolution, requestid.Of(r.Context())
	if more.status != 0 {
		p.Status = more.status
	}
	if p.Hidden() && r.Context().Err() == nil {
		logger.ErrorContext(r.Context(), "request failed", "request", p.RequestID, "method", r.Method, "path",
			r.URL.Path, "error", err)
	}
	body, failed := json.Marshal(p)
	if failed != nil { // a figure that JSON cannot encode: omit the decision, keep the refusal
		p.Promotion, p.Resolution = nil, nil
		body, _ = json.Marshal(p)
	}
	a := &response{status: p.Status, kind: rest.ProblemType, body: append(body, '\n'), header: more.header}
	if p.Status == http.StatusServiceUnavailable && !p.Lasting() && a.header.Get("Retry-After") == "" {
		a.with("Retry-After", rest.RetryAfter)
	}
	return a
}

func notAllowed(r *http.Request, allowed ...string) error {
	return refusal{
		error:  registry.Errorf(registry.CodeInvalid, "%s %s: want %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")),
		status: http.StatusMethodNotAllowed,
		header: http.Header{"Allow": {strings.Join(allowed, ", ")}},
	}
}

func noResource(r *http.Request) error {
	return registry.Errorf(registry.CodeNotFound, "no resource %s", r.URL.Path)
}

// unknown returns the error for an unknown name, with the kind of name.
func unknown(what, name string, err error) error {
	if !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	return registry.Errorf(registry.CodeNotFound, "%s %s is unknown", what, name)
}
