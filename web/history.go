package web

import (
	"net/http"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/web/page"
)

// historyEvents is how many events a page shows.
const historyEvents = 50

// historyView is the page of the history, newest first.
type historyView struct {
	Events       []event
	Environments []string
	Kinds        []string
	Environment  string
	Kind         string
	Model        string
	Signer       string // identifier of a key
	Principal    string
	By           string     // the principal as pages name it
	Chain        page.State // of the events that are shown
	ChainText    string     // what was checked
	First, Older string
	Export       string
	Whole        string // address that checks the whole history
}

func historyPage(config *page.Config, r *http.Request) (page.Answer, error) {
	ctx, query := r.Context(), r.URL.Query()
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return page.Answer{}, err
	}
	view := historyView{Environment: query.Get("environment"), Kind: query.Get("kind"), Model: query.Get("model")}
	view.Signer, view.Principal, view.By = query.Get("signer"), query.Get("principal"), registry.PlainText(page.NameOf(query.Get("principal")))
	q := history.HistoryQuery{
		Environment: view.Environment, Model: view.Model, Kind: history.EventKind(view.Kind), Signer: view.Signer, Principal: view.Principal,
		Descending: true, Limit: historyEvents,
	}
	if text := query.Get("before"); text != "" {
		if q.Before, err = strconv.ParseInt(text, 10, 64); err != nil || q.Before < 1 {
			return page.Answer{}, registry.Errorf(registry.CodeInvalid, "before: %.40q: want the number of an event", text)
		}
	}
	if view.Kind != "" && !slices.Contains(history.EventKinds(), q.Kind) {
		return page.Answer{}, registry.Errorf(registry.CodeInvalid, "kind: %.40q: want one of %v", view.Kind, history.EventKinds())
	}
	if view.Environment != "" {
		if _, err := environments.Find(view.Environment); err != nil {
			return page.Answer{}, err
		}
	}
	for _, e := range environments.List {
		view.Environments = append(view.Environments, e.Name)
	}
	for _, k := range history.EventKinds() {
		view.Kinds = append(view.Kinds, string(k))
	}
	events, err := config.Registry.History(ctx, q)
	if err != nil {
		return page.Answer{}, err
	}
	for _, e := range events {
		view.Events = append(view.Events, describeEvent(config.Now, e))
	}
	view.Chain, view.ChainText = chainState(events)
	filter := []string{"environment", view.Environment, "kind", view.Kind, "model", view.Model, "signer", view.Signer, "principal", view.Principal}
	if q.Before != 0 {
		view.First = page.WithQuery("/history", filter...)
	}
	if len(events) == historyEvents {
		view.Older = page.WithQuery("/history", append(filter, "before", strconv.FormatInt(events[len(events)-1].Seq, 10))...)
	}
	view.Export, view.Whole = page.WithQuery(page.APIPath+"/history", append(filter, "order", "desc", "limit", "1000")...), page.APIPath+"/history/verification"
	return page.Answer{Template: "history", Title: "History", Nav: "History", Body: view, API: view.Export, Live: page.APIPath + "/events"}, nil
}

// chainState checks each event against the one before it where both are shown, newest first.
func chainState(events []history.Event) (page.State, string) {
	checked := 0
	for i := 0; i+1 < len(events); i++ {
		if events[i].Seq != events[i+1].Seq+1 {
			continue
		}
		if err := events[i].VerifyChain(events[i+1]); err != nil {
			return page.StateOf(page.ClassBad, "broken"), registry.PlainText(err.Error())
		}
		checked++
	}
	if checked == 0 {
		return page.StateOf(page.ClassPlain, "not checked"), "No two events that follow one another are shown."
	}
	return page.StateOf(page.ClassGood, "intact"), "On this page, " + registry.Count(checked, "event has", "events have") + " the hash of the event before."
}
