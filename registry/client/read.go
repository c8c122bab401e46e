package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Environments returns the chain of environments.
func (c *Client) Environments(ctx context.Context) (registry.Environments, error) {
	var environments registry.Environments
	if err := c.get(ctx, wire.EnvironmentsPath, nil, &environments); err != nil {
		return registry.Environments{}, err
	}
	if err := environments.Validate(); err != nil {
		return registry.Environments{}, c.strange("environments", err)
	}
	return environments, nil
}

// Heads lists heads, page by page.
func (c *Client) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	values := query("environment", environment, "model", model)
	if model == "" {
		values.Set("limit", strconv.Itoa(registry.MaxPage))
	}
	heads, err := all[registry.Head](ctx, c, wire.HeadsPath, values, 0)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if err := h.Release.Validate(); err != nil {
			return nil, c.strange("head", err)
		}
	}
	slices.SortFunc(heads, func(a, b registry.Head) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Model, b.Model))
	})
	return heads, nil
}

// Restrictions returns the restriction list in force in an environment. The caller verifies the
// bundle, if it does not trust the service.
func (c *Client) Restrictions(ctx context.Context, environment string) (registry.SignedRestrictions, error) {
	var signed registry.SignedRestrictions
	if err := c.get(ctx, wire.RestrictionsPath, query("environment", environment), &signed); err != nil {
		return registry.SignedRestrictions{}, err
	}
	return signed, c.checkRestrictions(environment, signed)
}

// checkRestrictions refuses an answer about another environment, and one that contradicts itself.
func (c *Client) checkRestrictions(environment string, signed registry.SignedRestrictions) error {
	if signed.Environment != environment {
		return c.strange("restrictions", fmt.Errorf("want those of %q, got %q", environment, signed.Environment))
	}
	if found := digest.FromBytes(signed.Bundle); signed.Digest != "" && found != signed.Digest {
		return c.strange("restrictions", fmt.Errorf("the bundle has the digest %s, want %s", found, signed.Digest))
	}
	return nil
}

// History lists events, page by page.
func (c *Client) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	values := query("environment", q.Environment, "model", q.Model, "kind", string(q.Kind), "subject", string(q.Subject), "signer", q.Signer, "principal", q.Principal)
	if q.After > 0 {
		values.Set("after", strconv.FormatInt(q.After, 10))
	}
	if q.Before > 0 {
		values.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if q.Descending {
		values.Set("order", "desc")
	}
	limit := registry.MaxPage
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	values.Set("limit", strconv.Itoa(limit))
	return all[registry.Event](ctx, c, wire.HistoryPath, values, q.Limit)
}

// HistoryFaults lists what the history does not explain. If the hash chain is broken, the
// service does not look for faults, and HistoryFaults returns CodeTrust.
func (c *Client) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	var v wire.Verification
	if err := c.get(ctx, wire.VerificationPath, nil, &v); err != nil {
		return nil, err
	}
	if v.Fault != "" {
		return nil, registry.Errorf(registry.CodeTrust, "%s", v.Fault)
	}
	return v.Faults, nil
}

// Models lists models with their heads. Next is an opaque cursor of the service.
func (c *Client) Models(
	ctx context.Context,
	environment, after string,
	limit int,
) (registry.Page[registry.ModelHeads], error) {
	return page[registry.ModelHeads](ctx, c, wire.ModelListPath, query("environment", environment), after, limit)
}

// Releases lists releases by tag. Next is an opaque cursor of the service.
func (c *Client) Releases(
	ctx context.Context,
	environment, model, after string,
	limit int,
) (registry.Page[registry.TaggedRelease], error) {
	path, err := wire.ModelPath(model, wire.OpReleases)
	if err != nil {
		return registry.Page[registry.TaggedRelease]{}, err
	}
	return page[registry.TaggedRelease](ctx, c, path, query("environment", environment), after, limit)
}

// page reads one page of a list.
func page[T any](
	ctx context.Context,
	c *Client,
	path string,
	values url.Values,
	cursor string,
	limit int,
) (registry.Page[T], error) {
	values.Set("limit", strconv.Itoa(registry.PageLimit(limit)))
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	var p registry.Page[T]
	header, err := c.getList(ctx, path, values, &p.Items)
	if err != nil {
		return registry.Page[T]{}, err
	}
	next := cursorOf(header)
	p.Partial = header.Get(wire.Partial) != ""
	if next != "" && next == cursor {
		return registry.Page[T]{}, c.strange("next page", errors.New("it is the current page"))
	}
	p.Next = next
	return p, nil
}

// all reads a list to its end, or up to a limit.
func all[T any](ctx context.Context, c *Client, path string, values url.Values, limit int) ([]T, error) {
	var items []T
	for {
		var some []T
		next, err := c.getPage(ctx, path, values, &some)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
		switch {
		case limit > 0 && len(items) >= limit:
			return items[:limit], nil
		case next == "":
			return items, nil
		case next == values.Get("cursor"):
			return nil, c.strange("next page", errors.New("it is the current page"))
		}
		values.Set("cursor", next)
	}
}

// Resolve returns the engine for a node.
func (c *Client) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	return c.resolve(
		ctx,
		q.Model,
		wire.ResolveRequest{
			Environment: q.Environment,
			Version:     q.Version,
			Variant:     q.Variant,
			Node:        &q.Node,
			Runtime:     q.Runtime,
		},
	)
}

func (c *Client) resolve(ctx context.Context, model string, body wire.ResolveRequest) (registry.Resolution, error) {
	var resolution registry.Resolution
	problem, err := c.post(ctx, model, wire.OpResolve, body, &resolution)
	switch {
	case problem != nil && problem.Resolution != nil:
		return *problem.Resolution, err
	case err != nil:
		return registry.Resolution{}, err
	case resolution.Engine == nil:
		return registry.Resolution{}, c.strange("resolution", errors.New("it has no engine"))
	}
	if err := errors.Join(resolution.Release.Validate(), resolution.Engine.Digest.Validate()); err != nil {
		return registry.Resolution{}, c.strange("resolution", err)
	}
	ref, err := registry.ParseRef(resolution.Ref)
	if err != nil {
		return registry.Resolution{}, c.strange("resolution", err)
	}
	if ref.Host == c.base.Host { // for users who see the reference without the service
		ref.Host = ""
	}
	resolution.Ref = ref.String()
	return resolution, nil
}
