// Package backend has the parts that all operations of a service share: catalog, content, environments, keys and clock, and
// the steps that every change of the history has in common.
package backend

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Backend has the parts of a registry that operations read and write. Only Mirror, Compare, Inspect, Manifests, NodeTypes, RestrictionBundles, what
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
	// Inspect looks at the bytes of the engines of a release in a registry that does not inspect pushed content. Nil: promotions from such a registry are refused.
	Inspect   func(ctx context.Context, at policy.Located) error
	Manifests storage.Manifests // has the pusher of evidence; nil: unknown, so any may be pushed
	NodeTypes storage.NodeTypes // rollbacks warn of types that lose their engine; nil: no node types
	// CheckStatement holds the predicate of new evidence against its schema. Nil: it is only decoded, strictly.
	CheckStatement func(evidence.Statement) error
	// RestrictionBundles are of the same database as Catalog. Nil: restriction lists cannot be read, and
	// an environment allows nothing if its history names one.
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

// Apply applies a change on behalf of the principal of ctx.
func (s *Backend) Apply(ctx context.Context, change storage.Change) error {
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

// Find returns an environment. Errors: CodeNotFound.
func (s *Backend) Find(environment string) (policy.Environment, error) {
	return s.Environments.Find(environment)
}

// Resource returns the URI of a model in an environment.
func (s *Backend) Resource(environment, model string) string {
	return s.Environments.ResourceURI(environment, model)
}

// Head returns the head, or the zero Head if there is none.
func (s *Backend) Head(ctx context.Context, environment, model string) (history.Head, error) {
	h, err := s.Catalog.Head(ctx, environment, model)
	if registry.HasCode(err, registry.CodeNotFound) {
		return history.Head{}, nil
	}
	return h, err
}

// LastEvent returns the hash of the newest event, or "" if there are no events.
func (s *Backend) LastEvent(ctx context.Context) (registry.Digest, error) {
	e, err := s.NewestEvent(ctx)
	return e.Hash, err
}

// NewestEvent returns the newest event, or the zero Event if there are no events.
func (s *Backend) NewestEvent(ctx context.Context) (history.Event, error) {
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Descending: true}) {
		return e, err
	}
	return history.Event{}, nil
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

// Mirror is a copy of catalog data in another registry: tags, for clients that use only that
// registry, and lists of referrers. The other registry may lose them; the history has them too.
type Mirror interface {
	// Relist lists stored evidence again as a referrer of its subject. Errors: CodeNotFound if the
	// evidence no longer exists.
	Relist(ctx context.Context, repository string, evidence registry.Digest) error
	// Restore stores evidence again that the catalog keeps, and lists it. Errors: CodeNotFound, CodeInvalid and
	// CodeConflict if the repository does not take it.
	Restore(ctx context.Context, repository string, b evidence.Bundle) error
	// Tag returns the digest that a tag names. Errors: CodeNotFound.
	Tag(ctx context.Context, repository, tag string) (registry.Digest, error)
	// SetTag sets a tag to a manifest of the repository.
	SetTag(ctx context.Context, repository, tag string, d registry.Digest) error
}

// ExistingHead returns a head. Errors: CodeNotFound, with a hint where to find the names.
func ExistingHead(ctx context.Context, s *Backend, environment, model string) (history.Head, error) {
	head, err := s.Catalog.Head(ctx, environment, model)
	if registry.HasCode(err, registry.CodeNotFound) {
		return history.Head{}, registry.WithHint(
			registry.Errorf(registry.CodeNotFound, "%s has no model %q", environment, model),
			"mlpromote list shows the models of every environment")
	}
	if err != nil {
		return history.Head{}, registry.Errorf(registry.CodeOf(err), "%s in %s: %w", model, environment, err)
	}
	return head, nil
}

// CheckReason checks the reason of a person for a change, which others read. why is its purpose.
// Errors: CodeInvalid.
func CheckReason(verb, why, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return registry.Errorf(registry.CodeInvalid, "%s: a reason is required, %s (--reason TEXT)", verb, why)
	}
	return registry.ValidateText(verb+": the reason", reason)
}

// Needs returns the manifests of an environment that must not be collected before a head or the
// history names them. It is empty for another registry: its content is not collected here.
func Needs(e policy.Environment, model string, digests ...registry.Digest) []storage.ManifestPlace {
	if e.External() {
		return nil
	}
	var all []storage.ManifestPlace
	for _, d := range digests {
		all = append(all, storage.ManifestPlace{Repository: registry.Repository(e.Name, model), Digest: d})
	}
	return all
}

// PolicyDigest is the digest of the requirements of an environment.
func PolicyDigest(e policy.Environment) (registry.Digest, error) { return registry.CanonicalDigest(e) }
