// Package server is the REST API over a registry.Interface: what registry/client
// speaks to, and curl.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"

	"github.com/go-chi/chi/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Config is what the API is made of. Registry is required.
type Config struct {
	Registry registry.Interface
	// NodeType gives the node of a named type. Nil knows none.
	NodeType func(ctx context.Context, name string) (registry.Node, error)
	Logger   *slog.Logger // nil discards
}

// New gives the handler of everything below /api/v1. Errors: CodeInvalid.
func New(c Config) (http.Handler, error) {
	if c.Registry == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "server: a registry is required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NodeType == nil {
		c.NodeType = func(_ context.Context, name string) (registry.Node, error) {
			return registry.Node{}, registry.Errorf(registry.CodeNotFound, "no node type %q", name)
		}
	}
	s := server{c}
	r := chi.NewRouter()
	r.Get(wire.EnvironmentsPath, s.handle(s.environments))
	r.Get(wire.HeadsPath, s.handle(s.heads))
	r.Get(wire.HistoryPath, s.handle(s.history))
	r.HandleFunc(wire.ModelsPath+"*", s.handle(s.model))
	r.NotFound(s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		return registry.Errorf(registry.CodeNotFound, "no resource %s", r.URL.Path)
	}))
	r.MethodNotAllowed(s.handle(func(w http.ResponseWriter, r *http.Request) error { return notAllowed(w, r, http.MethodGet) }))
	return r, nil
}

type server struct{ Config }

// handler answers a request, or says why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle is the one place that writes errors.
func (s server) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, wire.MaxBody)
		err := h(w, r)
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.Code == registry.CodeInternal && r.Context().Err() == nil {
			s.Logger.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		w.Header().Set("Content-Type", wire.ProblemType)
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // the client is gone if this fails
	}
}

// refusal is an error with what was found out all the same.
type refusal struct {
	error
	promotion  *registry.Promotion
	resolution *registry.Resolution
}

func (r refusal) Unwrap() error { return r.error }

func problemOf(err error) wire.Problem {
	var r refusal
	if !errors.As(err, &r) {
		var wrongMethod methodError
		p := wire.NewProblem(err)
		if errors.As(err, &wrongMethod) {
			p.Status = http.StatusMethodNotAllowed
		}
		return p
	}
	p := wire.NewProblem(r.error)
	p.Promotion, p.Resolution = r.promotion, r.resolution
	return p
}

// methodError is a method that a resource does not have.
type methodError struct{ error }

func (m methodError) Unwrap() error { return m.error }

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	return methodError{registry.Errorf(registry.CodeInvalid, "%s %s: want %s", r.Method, r.URL.Path, allowed)}
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client is gone if this fails
	return nil
}

// read decodes a JSON body strictly.
func read(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return registry.Errorf(registry.CodeInvalid, "Content-Type is %q: want application/json", r.Header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return registry.Errorf(registry.CodeInvalid, "request body: %w", err)
	}
	if decoder.More() {
		return registry.Errorf(registry.CodeInvalid, "request body: more than one JSON document")
	}
	return nil
}
