package rest

import (
	"context"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Call is one call of an operation.
type Call interface {
	Describe() *Row
	// Kind is the kind of the row, or Decides for a request that only asks.
	Kind() Kind
	// At is the environment and the model of the request.
	At() (environment, model string)
	// Needs is the place and the permission that the caller needs.
	Needs(ctx context.Context) (Place, error)
	// Request and Answer are pointers to values of the types of the operation.
	Request() any
	Answer() any
	// Do carries the operation out and sets the answer, which can come with an error.
	Do(ctx context.Context) error
	// DoFor does the same for a caller that may not read everything.
	DoFor(ctx context.Context, p storage.Principal) error
	// Check finds what contradicts the request in the answer.
	Check() (what string, err error)
}

// Around handles calls: it refuses one, or carries it out by [Call.Do] and regards the answer.
type Around func(ctx context.Context, c Call) error

// Wrap returns a registry whose calls are handled by around, and carried out by inner. inner may be nil if around
// never calls Do.
func Wrap(inner api.Interface, around Around) api.Interface { return &wrapped{inner, around} }

// Ask makes one call of an operation.
func Ask[Req, Res any](ctx context.Context, around Around, o *Operation[Req, Res], q Req) (Res, error) {
	return ask(ctx, &wrapped{nil, around}, o, q)
}

type wrapped struct {
	inner  api.Interface
	around Around
}

func ask[Req, Res any](ctx context.Context, w *wrapped, o *Operation[Req, Res], q Req) (Res, error) {
	c := &call[Req, Res]{Operation: o, inner: w.inner, request: q}
	err := w.around(ctx, c)
	return c.answer, err
}

type call[Req, Res any] struct {
	*Operation[Req, Res]
	inner   api.Interface
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

func (c *call[Req, Res]) Answer() any { return &c.answer }

func (c *call[Req, Res]) Do(ctx context.Context) (err error) {
	if w, ok := c.inner.(*wrapped); ok { // the same call, so that a call through several costs one allocation
		c.inner = w.inner
		err = w.around(ctx, c)
		c.inner = w
		return err
	}
	c.answer, err = c.Operation.Do(ctx, c.inner, c.request)
	return err
}

func (c *call[Req, Res]) DoFor(ctx context.Context, p storage.Principal) (err error) {
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
