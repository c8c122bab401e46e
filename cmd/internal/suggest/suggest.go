// Package suggest says which model or version was probably meant where the one that was named is missing.
package suggest

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// suggesting remembers what was not found, so that a verb which ends with that can say what
// was probably meant. Names come from the lists that the caller may read anyway.
type suggesting struct{ api.Interface }

// missing is an error about a release that was not found, with the names that were asked for.
type missing struct {
	error
	environment, model, version string
}

func (m missing) Unwrap() error { return m.error }

// notFound adds the names to an error about something missing. Several errors stay several, so that each is
// shown by itself.
func notFound(err error, environment, model, version string) error {
	if _, several := err.(interface{ Unwrap() []error }); several || !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	return missing{err, environment, model, version}
}

func (s suggesting) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	r, err := s.Interface.Resolve(ctx, q)
	return r, notFound(err, q.Environment, q.Model, q.Version)
}

func (s suggesting) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	r, err := s.Interface.Release(ctx, environment, model, tagOrDigest)
	return r, notFound(err, environment, model, tagOrDigest)
}

func (s suggesting) Promote(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	p, err := s.Interface.Promote(ctx, r)
	return p, notFound(err, r.From, r.Model, r.Ref)
}

func (s suggesting) Rollback(ctx context.Context, r api.RollbackRequest) (api.Promotion, error) {
	p, err := s.Interface.Rollback(ctx, r)
	return p, notFound(err, r.Environment, r.Model, r.Version)
}

func (s suggesting) SetHold(ctx context.Context, environment, model, reason string) error {
	return notFound(s.Interface.SetHold(ctx, environment, model, reason), environment, model, "")
}

func (s suggesting) ReleaseHold(ctx context.Context, r api.HoldRelease) error {
	return notFound(s.Interface.ReleaseHold(ctx, r), r.Environment, r.Model, "")
}

// Around runs a verb on a registry, and adds to its error what was probably meant.
func Around(ctx context.Context, r *connect.Registry, verb func() error) error {
	r.Interface = suggesting{r.Interface}
	return add(ctx, r, verb())
}

// add adds to the error of a verb what was probably meant.
func add(ctx context.Context, r *connect.Registry, err error) error {
	var m missing
	if _, several := err.(interface{ Unwrap() []error }); several || !errors.As(err, &m) {
		return err
	}
	if near := m.meant(ctx, r); near != "" {
		return registry.WithHint(err, "did you mean %s?", ui.Plain(near))
	}
	return err
}

// meant is the model or version that is nearest to the one that is missing; empty where the
// names are there, or none is near.
func (m missing) meant(ctx context.Context, r *connect.Registry) string {
	if _, err := r.Envs.Find(m.environment); err != nil {
		return "" // which the error says
	}
	models := allNames(func(after string) (storage.Page[history.ModelHeads], error) {
		return r.Models(ctx, m.environment, after, storage.MaxPage)
	}, func(h history.ModelHeads) string { return h.Name })
	if !slices.Contains(models, m.model) {
		return registry.Nearest(m.model, models)
	}
	if m.version == "" || registry.Digest(m.version).Validate() == nil {
		return ""
	}
	versions := allNames(func(after string) (storage.Page[storage.TaggedRelease], error) {
		return r.Releases(ctx, m.environment, m.model, after, storage.MaxPage)
	}, func(t storage.TaggedRelease) string { return t.Tag })
	if near := registry.Nearest(m.version, versions); near != m.version && near != "" {
		return m.model + ":" + near
	}
	return ""
}

// mostPages is how far a list is read for a suggestion.
const mostPages = 10

// allNames reads the names in a list, as far as it can be read.
func allNames[T any](read func(after string) (storage.Page[T], error), name func(T) string) []string {
	var found []string
	after := ""
	for range mostPages {
		page, err := read(after)
		if err != nil {
			break
		}
		for _, item := range page.Items {
			found = append(found, name(item))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	return found
}
