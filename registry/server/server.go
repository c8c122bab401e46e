// Package server is the REST API over a registry.Interface: what registry/client
// speaks to, and curl.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

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

// read decodes a JSON body strictly. Its media type is one that a browser does not send
// to another site without asking there first.
func read(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal{
			error:  registry.Errorf(registry.CodeInvalid, "Content-Type is %q: want application/json", r.Header.Get("Content-Type")),
			status: http.StatusUnsupportedMediaType,
		}
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); err == nil {
			err = errors.New("there is more behind the JSON document")
		} else if errors.Is(err, io.EOF) {
			return nil
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refusal{error: registry.Errorf(registry.CodeInvalid, "request body: want at most %d bytes", tooLarge.Limit), status: http.StatusRequestEntityTooLarge}
	}
	return registry.Errorf(registry.CodeInvalid, "request body: %w", err)
}

// asked gives the values of a query. A name that nobody reads is a mistake: what it was
// meant to ask would be passed over.
func asked(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "query: %w", err)
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, registry.Errorf(registry.CodeInvalid, "query: unknown %q: want %s", name, strings.Join(names, ", "))
		}
	}
	return values, nil
}
