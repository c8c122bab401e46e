package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
)

// cell is what one environment has of a model.
type cell struct {
	Environment string
	Version     string // empty: nothing that the reader may see
	URL         string
	Digest      page.Digest
	Since       page.Moment
	By          string // who let it in
	Hold        string
	BreakGlass  string
	Refused     string // why nodes are not given what is there; empty: they are
}

// headIn is the head of an environment among those of a model, or the zero Head.
func headIn(heads []history.Head, environment string) history.Head {
	i := slices.IndexFunc(heads, func(h history.Head) bool { return h.Environment == environment })
	if i < 0 {
		return history.Head{Environment: environment}
	}
	return heads[i]
}

// readHead is a head that the reader may see, or the zero Head.
func readHead(ctx context.Context, reg api.Interface, environment, model string) (history.Head, error) {
	heads, err := reg.Heads(ctx, environment, model)
	return headIn(heads, environment), err
}

// readCell describes a head.
func readCell(ctx context.Context, config *page.Config, e policy.Environment, h history.Head) (cell, error) {
	c := cell{Environment: e.Name}
	if h.Release == "" {
		return c, nil
	}
	c.Version, c.Digest, c.Since = h.Version, page.DigestOf(h.Release), page.MomentOf(config.Now, h.Since)
	c.Hold, c.BreakGlass = registry.PlainText(h.Hold), registry.PlainText(h.BreakGlass)
	c.URL = page.WithQuery(page.ModelURL(h.Model), "environment", e.Name)
	var err error
	if c.By, err = movedBy(ctx, config.Registry, e, h); err != nil || !e.Protected() {
		return c, err
	}
	c.Refused, err = whyRefused(ctx, config.Preview, h)
	return c, err
}

// whyRefused says why nodes are not given engines of a head any more; empty: they are. A head that cannot be read
// concerns one model, and others are still shown.
func whyRefused(ctx context.Context, preview api.Previewer, h history.Head) (string, error) {
	engines, err := preview.Standing(ctx, h.Environment, h.Model)
	if err != nil {
		switch registry.CodeOf(err) {
		case registry.CodePolicy, registry.CodeTrust, registry.CodeDigest:
			return registry.PlainText(err.Error()), nil
		case registry.CodeForbidden, registry.CodeNotFound:
			return "", nil
		}
		return "", err
	}
	refused := slices.DeleteFunc(engines, func(c api.Candidate) bool { return len(c.Reasons) == 0 })
	if len(refused) == 0 {
		return "", nil
	}
	return registry.PlainText(fmt.Sprintf("%d of %s: %s", len(refused), registry.Count(len(engines), "engine"), refused[0].Reasons[0])), nil
}

// movedBy is who made a release the head.
func movedBy(ctx context.Context, reg api.Interface, e policy.Environment, h history.Head) (string, error) {
	kinds := []history.EventKind{history.EventPublish}
	if e.Protected() {
		kinds = []history.EventKind{history.EventPromote, history.EventRollback}
	}
	var newest history.Event
	for _, kind := range kinds {
		events, err := reg.History(ctx, history.HistoryQuery{
			Environment: e.Name, Model: h.Model, Kind: kind, Descending: true, Limit: 1})
		if err != nil {
			return "", err
		}
		for _, event := range events {
			if event.Seq > newest.Seq {
				newest = event
			}
		}
	}
	if newest.Release != h.Release {
		return "", nil
	}
	return registry.PlainText(cmp.Or(page.NameOf(newest.Principal), "local user")), nil
}
