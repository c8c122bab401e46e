package client

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Heads lists heads, page by page.
func (c *Client) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	q := rest.HeadsQuery{Environment: environment, Model: model}
	if model == "" {
		q.Limit = storage.MaxPage
	}
	heads, err := all[history.Head](ctx, c, &rest.Heads.Row, q, 0)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if err := h.Release.Validate(); err != nil {
			return nil, c.strange("head", err)
		}
	}
	slices.SortFunc(heads, func(a, b history.Head) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Model, b.Model))
	})
	return heads, nil
}

// History lists events, page by page.
func (c *Client) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	form := rest.HistoryForm{
		Environment: q.Environment, Model: q.Model, Kind: q.Kind, Subject: q.Subject, Signer: q.Signer, Principal: q.Principal,
		After: max(0, q.After), Before: max(0, q.Before), Paging: rest.Paging{Limit: storage.MaxPage},
	}
	if q.Descending {
		form.Order = "desc"
	}
	if q.Limit > 0 {
		form.Limit = min(form.Limit, q.Limit)
	}
	return all[history.Event](ctx, c, &rest.History.Row, form, q.Limit)
}

// HistoryFaults lists what the history does not explain. If the hash chain is broken, the
// service does not look for faults, and HistoryFaults returns CodeTrust.
func (c *Client) HistoryFaults(ctx context.Context) ([]history.HistoryFault, error) {
	v, err := c.VerifyHistory(ctx)
	if err == nil && v.Fault != "" {
		err = registry.Errorf(registry.CodeTrust, "%s", v.Fault)
	}
	if err != nil {
		return nil, err
	}
	return v.Faults, nil
}

// Resolve returns the engine for a node.
func (c *Client) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return c.resolve(
		ctx,
		rest.ResolveRequest{
			Model:       q.Model,
			Environment: q.Environment,
			Version:     q.Version,
			Variant:     q.Variant,
			As:          string(q.As),
			Node:        &q.Node,
			Runtime:     q.Runtime,
		},
	)
}

func (c *Client) resolve(ctx context.Context, form rest.ResolveRequest) (api.Resolution, error) {
	var resolution api.Resolution
	problem, err := c.send(ctx, &rest.Resolve.Row, form, &resolution)
	switch {
	case problem != nil && problem.Resolution != nil:
		return *problem.Resolution, err
	case err != nil:
		return api.Resolution{}, err
	case resolution.Engine == nil:
		return api.Resolution{}, c.strange("resolution", errors.New("it has no engine"))
	}
	if err := errors.Join(resolution.Release.Validate(), resolution.Engine.Digest.Validate()); err != nil {
		return api.Resolution{}, c.strange("resolution", err)
	}
	ref, err := registry.ParseRef(resolution.Ref)
	if err != nil {
		return api.Resolution{}, c.strange("resolution", err)
	}
	if ref.Host == c.base.Host { // for users who see the reference without the service
		ref.Host = ""
	}
	resolution.Ref = ref.String()
	return resolution, nil
}
