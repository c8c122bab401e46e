package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
)

// boardModels is how many models a board shows at once.
const boardModels = 50

// board is what each environment has of each model.
type board struct {
	Environments []string
	Rows         []boardRow
	First, Next  string // addresses; empty if there is no such page
	After        string // the model that the page begins after
}

// boardRow is one model.
type boardRow struct {
	Model string
	URL   string
	Cells []cell
	Next  []decision // of the promotions that would change something
}

// cell is what one environment has of a model.
type cell struct {
	Environment string
	Version     string // empty: nothing that the reader may see
	URL         string
	Digest      digest
	Since       moment
	By          string // who let it in
	Hold        string
	BreakGlass  string
	Refused     string // why nodes are not given what is there; empty: they are
}

func boardPage(config *Config, r *http.Request) (answer, error) {
	after := r.URL.Query().Get("after")
	environments, err := config.Registry.Environments(r.Context())
	if err != nil {
		return answer{}, err
	}
	page, err := config.Registry.Models(r.Context(), "", after, boardModels)
	if err != nil {
		return answer{}, err
	}
	view := board{After: after}
	for _, e := range environments.List {
		view.Environments = append(view.Environments, e.Name)
	}
	for _, m := range page.Items {
		row, err := readRow(r.Context(), config, environments, m)
		if err != nil {
			return answer{}, err
		}
		view.Rows = append(view.Rows, row)
	}
	if after != "" {
		view.First = "/"
	}
	if page.Next != "" {
		view.Next = withQuery("/", "after", page.Next)
	}
	return answer{
		template: "board", title: "Models", nav: "Models", body: view, live: apiPath + "/events",
		api: withQuery(apiPath+"/models", "after", after, "limit", "50"),
	}, nil
}

func readRow(ctx context.Context, config *Config, environments policy.Environments, m history.ModelHeads) (boardRow, error) {
	row := boardRow{Model: m.Name, URL: modelURL(m.Name)}
	for _, e := range environments.List {
		c, err := readCell(ctx, config, e, headIn(m.Heads, e.Name))
		if err != nil {
			return row, err
		}
		row.Cells = append(row.Cells, c)
	}
	var err error
	row.Next, err = waitingDecisions(ctx, config, environments, m)
	return row, err
}

// headIn is the head of an environment among those of a model, or the zero Head.
func headIn(heads []history.Head, environment string) history.Head {
	i := slices.IndexFunc(heads, func(h history.Head) bool { return h.Environment == environment })
	if i < 0 {
		return history.Head{Environment: environment}
	}
	return heads[i]
}

// waitingDecisions are the decisions about what an environment before has and the next one has not. Those that the
// reader may not see are left out.
func waitingDecisions(ctx context.Context, config *Config, environments policy.Environments, m history.ModelHeads) ([]decision, error) {
	var all []decision
	for _, to := range environments.List {
		from := headIn(m.Heads, to.From)
		if !to.Protected() || from.Release == "" || from.Release == headIn(m.Heads, to.Name).Release {
			continue
		}
		d, err := askPolicy(ctx, config, api.PromoteRequest{Model: m.Name, From: to.From, To: to.Name})
		switch {
		case registry.HasCode(err, registry.CodeForbidden) || registry.HasCode(err, registry.CodeNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, d)
		}
	}
	return all, nil
}

// askPolicy asks the policy, whose refusal is an answer too. So is content that was changed: it
// concerns one model, and others are still shown.
func askPolicy(ctx context.Context, config *Config, r api.PromoteRequest) (decision, error) {
	p, err := config.Preview.Preview(ctx, r)
	switch code := registry.CodeOf(err); {
	case err == nil, code == registry.CodePolicy, code == registry.CodeTrust, code == registry.CodeDigest:
	default:
		return decision{}, err
	}
	if p.Environment == "" {
		p.Environment, p.From, p.Model = r.To, r.From, r.Model
	}
	return decisionOf(config.Now, p, err), nil
}

// readCell describes a head.
func readCell(ctx context.Context, config *Config, e policy.Environment, h history.Head) (cell, error) {
	c := cell{Environment: e.Name}
	if h.Release == "" {
		return c, nil
	}
	c.Version, c.Digest, c.Since = h.Version, digestOf(h.Release), momentOf(config.Now, h.Since)
	c.Hold, c.BreakGlass = registry.PlainText(h.Hold), registry.PlainText(h.BreakGlass)
	c.URL = withQuery(modelURL(h.Model), "environment", e.Name)
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
	return registry.PlainText(cmp.Or(nameOf(newest.Principal), "local user")), nil
}
