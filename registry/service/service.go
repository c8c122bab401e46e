// Package service is the registry that acts: it reads content and evidence, asks the
// policy, and moves heads. The rules are registry's; this package only keeps their
// order, so that a crash at any instant leaves the old head or the new one.
package service

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Config is what a Service is made of. Every field but Mirror, Manifests, NodeTypes and Now is required.
type Config struct {
	Environments registry.Environments
	Catalog      registry.Catalog
	Records      registry.Records // of the database that Catalog is
	Listing      registry.Listing // of the same
	Intents      registry.Intents
	Content      registry.Content
	Verify       registry.VerifyEvidence
	Sign         registry.SignEvidence // asked for the promoter's role only
	Mirror       Mirror                // required where an environment is external
	Manifests    registry.Manifests    // says who pushed evidence; nil: anybody may have
	NodeTypes    registry.NodeTypes    // rollbacks warn of those left without an engine; nil: none
	Tool         registry.ToolIdentity
	Now          registry.Clock // nil means time.Now
}

// Service implements registry.Interface over its ports. It is safe for concurrent use.
type Service struct{ Config }

var _ registry.Interface = (*Service)(nil)

// New checks the configuration. A part that is missing is refused, since each of
// them is a wall. Errors: CodeInvalid.
func New(c Config) (*Service, error) {
	if c.Catalog == nil || c.Records == nil || c.Listing == nil || c.Intents == nil || c.Content == nil || c.Verify == nil || c.Sign == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "service: catalog, records, listing, intents, content, verify and sign are all required")
	}
	if err := c.Environments.Validate(); err != nil {
		return nil, err
	}
	if c.Mirror == nil && slices.ContainsFunc(c.Environments.List, registry.Environment.External) {
		return nil, registry.Errorf(registry.CodeInvalid, "service: a mirror is required where an environment has a registry of its own")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c}, nil
}

// Environments gives the chain of environments.
func (s *Service) Environments(context.Context) (registry.Environments, error) {
	return s.Config.Environments, nil
}

// Heads lists heads.
func (s *Service) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	if environment != "" {
		if _, err := s.find(environment); err != nil {
			return nil, err
		}
	}
	return s.Catalog.Heads(ctx, environment, model)
}

// History lists events.
func (s *Service) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	var events []registry.Event
	for e, err := range s.Catalog.History(ctx, q) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// apply makes a change in the name of whoever ctx works for.
func (s *Service) apply(ctx context.Context, change registry.Change) error {
	if p, ok := registry.PrincipalOf(ctx); ok {
		change.Event.Principal = p.Name
	}
	// Whatever verb a reason came with: it stays in the history, which others list.
	if err := registry.ValidateText("the reason", change.Event.Reason); err != nil {
		return err
	}
	_, err := s.Catalog.Apply(ctx, change)
	return err
}

func (s *Service) find(environment string) (registry.Environment, error) {
	return s.Config.Environments.Find(environment)
}

func (s *Service) resource(environment, model string) string {
	return s.Config.Environments.ResourceURI(environment, model)
}

// head gives the head, or the zero Head where there is none.
func (s *Service) head(ctx context.Context, environment, model string) (registry.Head, error) {
	h, err := s.Catalog.Head(ctx, environment, model)
	if registry.HasCode(err, registry.CodeNotFound) {
		return registry.Head{}, nil
	}
	return h, err
}

// lastEvent gives the hash of the newest event, or "" before the first.
func (s *Service) lastEvent(ctx context.Context) (registry.Digest, error) {
	for e, err := range s.Catalog.History(ctx, registry.HistoryQuery{Descending: true}) {
		return e.Hash, err
	}
	return "", nil
}
