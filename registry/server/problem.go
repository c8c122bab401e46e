package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// handler answers a request, or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle is the one place that writes errors.
func (s server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, wire.MaxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		err := h(w, r)
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.Hidden() && r.Context().Err() == nil {
			s.Logger.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		w.Header().Set("Content-Type", wire.ProblemType)
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // the client is gone if this fails
	}
}

// refusal is an error with what was found out all the same, or with a status of its own.
type refusal struct {
	error
	promotion  *registry.Promotion
	resolution *registry.Resolution
	status     int // 0: that of the error's code
}

func (r refusal) Unwrap() error { return r.error }

func problemOf(err error) wire.Problem {
	var r refusal
	if !errors.As(err, &r) {
		return wire.NewProblem(err)
	}
	p := wire.NewProblem(r.error)
	p.Promotion, p.Resolution = r.promotion, r.resolution
	if r.status != 0 {
		p.Status = r.status
	}
	return p
}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed ...string) error {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return refusal{
		error:  registry.Errorf(registry.CodeInvalid, "%s %s: want %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")),
		status: http.StatusMethodNotAllowed,
	}
}
