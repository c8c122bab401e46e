package web

import (
	"context"
	"net/http"

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
