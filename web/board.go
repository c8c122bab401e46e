package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/web/page"
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

func boardPage(config *page.Config, r *http.Request) (page.Answer, error) {
	after := r.URL.Query().Get("after")
	environments, err := config.Registry.Environments(r.Context())
	if err != nil {
		return page.Answer{}, err
	}
	list, err := config.Registry.Models(r.Context(), "", after, boardModels)
	if err != nil {
		return page.Answer{}, err
	}
	view := board{After: after}
	for _, e := range environments.List {
		view.Environments = append(view.Environments, e.Name)
	}
	for _, m := range list.Items {
		row, err := readRow(r.Context(), config, environments, m)
		if err != nil {
			return page.Answer{}, err
		}
		view.Rows = append(view.Rows, row)
	}
	if after != "" {
		view.First = "/"
	}
	if list.Next != "" {
		view.Next = page.WithQuery("/", "after", list.Next)
	}
	return page.Answer{
		Template: "board", Title: "Models", Nav: "Models", Body: view, Live: page.APIPath + "/events",
		API: page.WithQuery(page.APIPath+"/models", "after", after, "limit", "50"),
	}, nil
}

func readRow(ctx context.Context, config *page.Config, environments policy.Environments, m history.ModelHeads) (boardRow, error) {
	row := boardRow{Model: m.Name, URL: page.ModelURL(m.Name)}
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
