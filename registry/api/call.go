package api

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Call is one call of an operation.
type Call interface {
	Describe() *Row
	// Kind is that of the row, or Decides for a request that only asks.
	Kind() Kind
	// At is what the request is about.
	At() (environment, model string)
	// Needs is the place and the permission that the caller needs.
	Needs(ctx context.Context) (Place, error)
	// Request and Answer are pointers to values of the types of the operation.
	Request() any
	Answer() any
	// Do carries the operation out and sets the answer, which can come with an error.
	Do(ctx context.Context) error
	// DoFor does the same for a caller that may not read everything.
	DoFor(ctx context.Context, p registry.Principal) error
	// Check finds what contradicts the request in the answer.
	Check() (what string, err error)
}

// Around handles calls: it refuses one, or carries it out by [Call.Do] and regards the answer.
type Around func(ctx context.Context, c Call) error

// Wrap returns a registry whose calls are handled by around, and carried out by inner. inner may be nil if around
// never calls Do.
func Wrap(inner registry.Interface, around Around) registry.Interface { return &wrapped{inner, around} }

// Ask makes one call of an operation.
func Ask[Req, Res any](ctx context.Context, around Around, o *Operation[Req, Res], q Req) (Res, error) {
	return ask(ctx, &wrapped{nil, around}, o, q)
}

type wrapped struct {
	inner  registry.Interface
	around Around
}

func ask[Req, Res any](ctx context.Context, w *wrapped, o *Operation[Req, Res], q Req) (Res, error) {
	c := &call[Req, Res]{Operation: o, inner: w.inner, request: q}
	err := w.around(ctx, c)
	return c.answer, err
}

type call[Req, Res any] struct {
	*Operation[Req, Res]
	inner   registry.Interface
	request Req
	answer  Res
}

func (c *call[Req, Res]) Kind() Kind {
	if c.Asks != nil && c.Asks(c.request) {
		return Decides
	}
	return c.Row.Kind
}

func (c *call[Req, Res]) At() (environment, model string) {
	if c.Operation.At == nil {
		return "", ""
	}
	return c.Operation.At(c.request)
}

func (c *call[Req, Res]) Needs(ctx context.Context) (Place, error) {
	if c.Operation.Needs != nil {
		return c.Operation.Needs(ctx, c.inner, c.request)
	}
	environment, model := c.At()
	return Place{c.Permission, environment, model}, nil
}

func (c *call[Req, Res]) Request() any { return &c.request }
func (c *call[Req, Res]) Answer() any  { return &c.answer }

func (c *call[Req, Res]) Do(ctx context.Context) (err error) {
	c.answer, err = c.Operation.Do(ctx, c.inner, c.request)
	return err
}

func (c *call[Req, Res]) DoFor(ctx context.Context, p registry.Principal) (err error) {
	if c.Readable == nil {
		return c.Do(ctx)
	}
	c.answer, err = c.Readable(ctx, c.inner, p, c.request)
	return err
}

func (c *call[Req, Res]) Check() (string, error) {
	if c.Operation.Check == nil {
		return "", nil
	}
	return c.Operation.Check(c.request, c.answer)
}

// The methods of [registry.Interface] are calls of the rows.

func (w *wrapped) Environments(ctx context.Context) (registry.Environments, error) {
	return ask(ctx, w, Environments, None{})
}

func (w *wrapped) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	return ask(ctx, w, Heads, HeadsQuery{Environment: environment, Model: model})
}

func (w *wrapped) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	return ask(ctx, w, Resolve, q)
}

func (w *wrapped) Restrictions(ctx context.Context, environment string) (registry.SignedRestrictions, error) {
	return ask(ctx, w, Restrictions, EnvironmentQuery{environment})
}

func (w *wrapped) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	return ask(ctx, w, History, q)
}

func (w *wrapped) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	return ask(ctx, w, Publish, p)
}

func (w *wrapped) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	attached, err := ask(ctx, w, Attach, a)
	return attached.Bundle, err
}

func (w *wrapped) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	return ask(ctx, w, Promote, r)
}

func (w *wrapped) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	return ask(ctx, w, Attest, r)
}

func (w *wrapped) Restrict(ctx context.Context, environment string, bundle []byte) (registry.SignedRestrictions, error) {
	return ask(ctx, w, Restrict, Restriction{environment, bundle})
}

func (w *wrapped) TrustBundle(ctx context.Context) (registry.SignedTrust, error) {
	return ask(ctx, w, NewestTrust, None{})
}

func (w *wrapped) PublishTrust(ctx context.Context, bundle []byte) (registry.SignedTrust, error) {
	return ask(ctx, w, PublishTrust, TrustBundle{bundle})
}

func (w *wrapped) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	return ask(ctx, w, Rollback, r)
}

func (w *wrapped) SetHold(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, SetHold, Hold{environment, model, reason})
	return err
}

func (w *wrapped) ReleaseHold(ctx context.Context, r registry.HoldRelease) error {
	_, err := ask(ctx, w, ReleaseHold, r)
	return err
}

func (w *wrapped) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	return ask(ctx, w, HistoryFaults, None{})
}

func (w *wrapped) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, AcceptHistory, HistoryAcceptance{environment, model, reason})
	return err
}

func (w *wrapped) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	return ask(ctx, w, Release, ReleaseQuery{environment, model, tagOrDigest})
}

func (w *wrapped) Claims(ctx context.Context, environment string, r registry.Release) ([]registry.Claim, registry.IgnoredEvidence, error) {
	found, err := ask(ctx, w, Evidence, ClaimsQuery{environment, r})
	return found.Claims, registry.IgnoredEvidence{Ignored: found.Ignored, IgnoredCount: found.IgnoredCount}, err
}

func (w *wrapped) Engine(ctx context.Context, environment, model string, d registry.Digest) (registry.Engine, error) {
	return ask(ctx, w, Engine, DigestQuery{environment, model, d})
}

func (w *wrapped) Bundle(ctx context.Context, environment, model string, d registry.Digest) (registry.Bundle, error) {
	return ask(ctx, w, Bundle, DigestQuery{environment, model, d})
}

func (w *wrapped) Models(ctx context.Context, environment, after string, limit int) (registry.Page[registry.ModelHeads], error) {
	return ask(ctx, w, Models, ModelsQuery{environment, Paging{registry.PageLimit(limit), after}})
}

func (w *wrapped) Releases(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.TaggedRelease], error) {
	return ask(ctx, w, Releases, ReleasesQuery{environment, model, Paging{registry.PageLimit(limit), after}})
}
