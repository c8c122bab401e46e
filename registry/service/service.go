// Package service implements the registry: it reads content and evidence, checks the policy,
// and moves heads. Package registry has the rules. This package orders the steps so that a
// crash at any point leaves the old head or the new one.
package service

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Backend is what the operations work with. Only Mirror, Compare, Inspect, Manifests, NodeTypes, RestrictionBundles, what
// trust bundles need, and Now are optional.
type Backend struct {
	Environments policy.Environments
	Catalog      storage.Catalog
	Records      history.HistoryIndex // of the same database as Catalog
	Listing      storage.Listing      // of the same database as Catalog
	Intents      storage.Intents
	Content      storage.Content
	Verify       storage.VerifyEvidence
	Sign         storage.SignEvidence // called for the promoter's and the attester's role
	Mirror       Mirror               // required if an environment is external
	// Compare reads and compares limits and interfaces. Nil: not known, so that requirements that need
	// it are not met.
	Compare policy.CompareReleases
	// Inspect looks at the bytes of the engines of a release, which is in a registry that does not look at what is pushed
	// to it. Nil: promotions from such a registry are refused.
	Inspect   func(ctx context.Context, at policy.Located) error
	Manifests storage.Manifests // says who pushed evidence; nil: unknown, so any may be pushed
	NodeTypes storage.NodeTypes // rollbacks warn of types that lose their engine; nil: no node types
	// CheckStatement holds the predicate of new evidence against its schema. Nil: it is only decoded, strictly.
	CheckStatement func(evidence.Statement) error
	// RestrictionBundles are of the same database as Catalog. Nil: restriction lists cannot be read, so
	// that an environment whose history names one allows nothing.
	RestrictionBundles storage.RestrictionBundles
	// TrustBundles are of the same database as Catalog. ReadKey reads a file that environments.yaml names,
	// and KeptCheckpoint a checkpoint that the catalog keeps, by its size. Nil: nothing is published.
	TrustBundles   storage.TrustBundles
	ReadKey        func(path string) ([]byte, error)
	KeptCheckpoint func(ctx context.Context, size int64) (trust.KeptCheckpoint, error)
	// MaxReferrers is how much adverse evidence about one subject each caller may attach in an environment; 0: any.
	MaxReferrers int
	Tool         evidence.ToolIdentity
	Now          storage.Clock // nil means time.Now
}

// Service implements api.Interface with its ports. It is safe for concurrent use.
type Service struct{ backend *Backend }

var _ api.Interface = (*Service)(nil)

// New checks the configuration. It requires every part that a check depends on. Errors:
// CodeInvalid.
func New(c Backend) (*Service, error) {
	if c.Catalog == nil || c.Records == nil || c.Listing == nil || c.Intents == nil || c.Content == nil ||
		c.Verify == nil ||
		c.Sign == nil {
		return nil, registry.Errorf(registry.CodeInvalid,
			"service: catalog, records, listing, intents, content, verify and sign are all required")
	}
	if err := c.Environments.Validate(); err != nil {
		return nil, err
	}
	if c.Mirror == nil && slices.ContainsFunc(c.Environments.List, policy.Environment.External) {
		return nil, registry.Errorf(registry.CodeInvalid,
			"service: a mirror is required where an environment has a registry of its own")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Content = keptContent{c.Content, c.Catalog}
	return &Service{backend: &c}, nil
}

// Environments returns the chain of environments.
func Environments(ctx context.Context, s *Backend) (policy.Environments, error) {
	return s.Environments, nil
}

// Heads lists heads.
func Heads(ctx context.Context, s *Backend, environment, model string) ([]history.Head, error) {
	if environment != "" {
		if _, err := s.find(environment); err != nil {
			return nil, err
		}
	}
	heads, err := s.Catalog.Heads(ctx, environment, model)
	if err != nil {
		return nil, err
	}
	return heads, markSkipped(ctx, s, heads)
}

// markSkipped says of heads that came by a break-glass promotion what that skipped. The promotion
// that counts is the last one of the release.
func markSkipped(ctx context.Context, s *Backend, heads []history.Head) error {
	for i, h := range heads {
		e, err := s.find(h.Environment)
		if err != nil || !e.Protected() {
			continue // heads of an environment that is no longer in the file are listed too
		}
		query := history.HistoryQuery{Environment: h.Environment, Model: h.Model, Kind: history.EventPromote, Descending: true}
		for event, err := range s.Catalog.History(ctx, query) {
			if err != nil {
				return err
			}
			if event.Release == h.Release {
				if policy.SaysSkipped(event.Reason) {
					heads[i].BreakGlass = event.Reason
				}
				break
			}
		}
	}
	return nil
}

// History lists events.
func (s *Backend) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	var events []history.Event
	for e, err := range s.Catalog.History(ctx, q) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// apply applies a change on behalf of the principal of ctx.
func (s *Backend) apply(ctx context.Context, change storage.Change) error {
	if p, ok := storage.PrincipalOf(ctx); ok {
		change.Event.Principal = p.Name
		if (change.Event.Kind == history.EventPublish || change.Event.Builds()) && p.Person.Validate() == nil {
			who := p.Person
			who.Name = "" // no rule compares it, and the history keeps it for ever
			change.Event.Person = &who
		}
	}
	// Check the reason here for all callers: it stays in the history, which others read.
	if err := registry.ValidateText("the reason", change.Event.Reason); err != nil {
		return err
	}
	_, err := s.Catalog.Apply(ctx, change)
	return err
}

func (s *Backend) find(environment string) (policy.Environment, error) {
	return s.Environments.Find(environment)
}

func (s *Backend) resource(environment, model string) string {
	return s.Environments.ResourceURI(environment, model)
}

// head returns the head, or the zero Head if there is none.
func (s *Backend) head(ctx context.Context, environment, model string) (history.Head, error) {
	h, err := s.Catalog.Head(ctx, environment, model)
	if registry.HasCode(err, registry.CodeNotFound) {
		return history.Head{}, nil
	}
	return h, err
}

// lastEvent returns the hash of the newest event, or "" if there are no events.
func (s *Backend) lastEvent(ctx context.Context) (registry.Digest, error) {
	e, err := s.newestEvent(ctx)
	return e.Hash, err
}

// newestEvent returns the newest event, or the zero Event if there are no events.
func (s *Backend) newestEvent(ctx context.Context) (history.Event, error) {
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Descending: true}) {
		return e, err
	}
	return history.Event{}, nil
}
