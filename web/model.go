package web

import (
	"context"
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

const eventsShown = 12

// modelView is one model: where its releases are, and what the chosen environment has.
type modelView struct {
	Model    string
	Chain    []step
	Chosen   string // the environment whose head and releases are shown; empty if no head may be seen
	Release  *releases.Summary
	Releases []tagged
	Next     string  // address of the next page of releases; empty on the last page
	Compare  string  // address that compares two of Releases; empty if there are not two
	Offers   []offer // of the chosen environment
	Reports  *reportsView
	Periods  []period
	Events   []event
}

// step is an environment of the chain, with the decision about moving the head of the environment before it
// here.
type step struct {
	cell
	Chosen   bool
	Pending  *decision
	Changes  []string // what a promotion would change
	Compared bool     // whether Changes are known
}

// tagged is a release in a list.
type tagged struct {
	Tag    string
	URL    string
	Digest page.Digest
	IsHead bool
	Beside string // page that compares it with the head; empty for the head
}

// modelPages serves everything below a model's address.
func modelPages(config *page.Config, r *http.Request) (page.Answer, error) {
	path := r.PathValue("path")
	name, rest, _ := strings.Cut(path, page.Separator)
	kind, value, _ := strings.Cut(rest, "/")
	switch {
	case rest == "" && !strings.HasSuffix(path, page.Separator):
		return modelPage(config, r, name)
	case rest == "compare":
		return releases.ComparePage(config, r, name)
	case kind == "releases" && registry.Digest(value).Validate() == nil:
		return releases.ReleasePage(config, r, name, registry.Digest(value))
	case kind == "engines" && registry.Digest(value).Validate() == nil:
		return releases.EnginePage(config, r, name, registry.Digest(value))
	}
	return page.Answer{}, registry.Errorf(registry.CodeNotFound, "there is no page at this address")
}

func modelPage(config *page.Config, r *http.Request, name string) (page.Answer, error) {
	ctx, query := r.Context(), r.URL.Query()
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return page.Answer{}, err
	}
	heads, err := config.Registry.Heads(ctx, "", name)
	if err != nil {
		return page.Answer{}, err
	}
	if len(heads) == 0 {
		return page.Answer{}, registry.Errorf(registry.CodeNotFound, "there is no model %.200q that you may see", name)
	}
	if chosen := query.Get("environment"); chosen != "" {
		if _, err := environments.Find(chosen); err != nil {
			return page.Answer{}, err
		}
	}
	view := modelView{Model: name, Chosen: chosenHead(environments, heads, query.Get("environment"))}
	if view.Chain, err = chainOf(ctx, config, environments, history.ModelHeads{Name: name, Heads: heads}); err != nil {
		return page.Answer{}, err
	}
	for i := range view.Chain {
		view.Chain[i].Chosen = view.Chain[i].Environment == view.Chosen
	}
	if h := headIn(heads, view.Chosen); h.Release != "" {
		if view.Release, err = releases.ReadSummary(ctx, config.Registry, environments, view.Chosen, name, h.Release); err != nil {
			return page.Answer{}, err
		}
		view.Release.Engines = releases.EnginesBy(query, view.Release.Engines.Rows)
	}
	view.Offers = headOffers(ctx, environments, headIn(heads, view.Chosen))
	if err := listReleases(ctx, config.Registry, &view, headIn(heads, view.Chosen), query.Get("after")); err != nil {
		return page.Answer{}, err
	}
	if view.Chosen != "" {
		if view.Reports, err = readReports(ctx, config, view.Chosen, name); err != nil {
			return page.Answer{}, err
		}
	}
	if view.Periods, err = timelineOf(ctx, config, environments, heads, name); err != nil {
		return page.Answer{}, err
	}
	if view.Events, err = recentEvents(ctx, config, name, eventsShown); err != nil {
		return page.Answer{}, err
	}
	return page.Answer{
		Template: "model", Title: name, Nav: "Models", Body: view,
		API: page.ModelAPI(name, "release", "environment", view.Chosen), Live: page.WithQuery(page.APIPath+"/events", "model", name),
	}, nil
}

// headOffers are what can be decided about a head.
func headOffers(ctx context.Context, environments policy.Environments, h history.Head) []offer {
	e, err := environments.Find(h.Environment)
	if err != nil || h.Release == "" {
		return nil
	}
	f := form{Environment: h.Environment, Model: h.Model, Release: h.Release}
	if !e.Protected() {
		f.Action = actQuarantine
		return offers(ctx, f)
	}
	hold, back, quarantine := f, f, f
	if hold.Action = actHold; h.Hold != "" {
		hold.Action = actReleaseHold
	}
	back.Action, back.Replaces, quarantine.Action = actRollback, h.Release, actQuarantine
	return offers(ctx, back, hold, quarantine)
}

// chosenHead is the environment to show: the one that was asked for, or the last one with a head.
func chosenHead(environments policy.Environments, heads []history.Head, asked string) string {
	if asked != "" {
		return asked
	}
	chosen := ""
	for _, e := range environments.List {
		if headIn(heads, e.Name).Release != "" {
			chosen = e.Name
		}
	}
	return chosen
}

// chainOf describes each environment, and the promotions that would change something.
func chainOf(ctx context.Context, config *page.Config, environments policy.Environments, m history.ModelHeads) ([]step, error) {
	row, err := readRow(ctx, config, environments, m)
	if err != nil {
		return nil, err
	}
	var steps []step
	for i, e := range environments.List {
		st := step{cell: row.Cells[i]}
		for _, d := range row.Next {
			if d.To == e.Name {
				st.Pending = &d
				st.Changes, st.Compared, err = releaseChanges(ctx, config.Registry, headIn(m.Heads, e.From), headIn(m.Heads, e.Name))
			}
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, st)
	}
	return steps, nil
}

// listReleases adds a page of the releases of the chosen environment.
func listReleases(ctx context.Context, reg api.Interface, view *modelView, head history.Head, after string) error {
	if view.Chosen == "" {
		return nil
	}
	list, err := reg.Releases(ctx, view.Chosen, view.Model, after, releases.PageSize)
	if registry.HasCode(err, registry.CodeForbidden) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, t := range list.Items {
		one := tagged{Tag: t.Tag, URL: page.ReleaseURL(view.Model, t.Release, view.Chosen), Digest: page.DigestOf(t.Release), IsHead: t.Release == head.Release}
		if head.Release != "" && !one.IsHead {
			one.Beside = page.CompareURL(view.Model, head.Release, t.Release)
		}
		view.Releases = append(view.Releases, one)
	}
	if len(view.Releases) > 1 {
		view.Compare = page.ModelURL(view.Model) + page.Separator + "compare"
	}
	if list.Next != "" {
		view.Next = page.WithQuery(page.ModelURL(view.Model), "environment", view.Chosen, "after", list.Next)
	}
	return nil
}
