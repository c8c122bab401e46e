package web

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
)

// periodsShown is how many heads of an environment a timeline goes back.
const periodsShown = 8

// period is the time that a release was the head of a protected environment.
type period struct {
	Environment string
	Version     string
	URL         string      // of the release
	From, Until page.Moment // Until is zero for what is there now
	Move        page.State  // how it became the head
	By          string
	Reason      string
}

// timelineOf lists what protected environments had, each newest first, in the order of the chain. The
// reader sees those whose head they may see.
func timelineOf(ctx context.Context, config *page.Config, environments policy.Environments, heads []history.Head, model string) ([]period, error) {
	var all []period
	for _, e := range environments.List {
		if !e.Protected() || headIn(heads, e.Name).Release == "" {
			continue
		}
		moves, err := readMoves(ctx, config.Registry, e.Name, model)
		if err != nil {
			return nil, err
		}
		var until page.Moment
		for _, m := range moves {
			view := describeEvent(config.Now, m)
			move := page.StateOf(page.ClassGood, "promoted")
			if m.Kind == history.EventRollback {
				move = page.StateOf(page.ClassBad, "rolled back")
			}
			all = append(all, period{e.Name, view.Version, view.URL, view.Time, until, move, view.By, view.Reason})
			until = view.Time
		}
	}
	return all, nil
}

// readMoves lists the events that moved the head of a protected environment, newest first.
func readMoves(ctx context.Context, reg api.Interface, environment, model string) ([]history.Event, error) {
	var all []history.Event
	for _, kind := range []history.EventKind{history.EventPromote, history.EventRollback} {
		events, err := reg.History(ctx, history.HistoryQuery{Environment: environment, Model: model, Kind: kind, Descending: true, Limit: periodsShown})
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	slices.SortFunc(all, func(a, b history.Event) int { return int(b.Seq - a.Seq) })
	return all[:min(len(all), periodsShown)], nil
}
