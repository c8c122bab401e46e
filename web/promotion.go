package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// promotionView is the page of a promotion: what it needs and has, and what it would change.
type promotionView struct {
	decision
	Model, ModelURL string
	ReleaseURL      string
	Digest          digest
	Now             cell // what the destination has
	Changes         []string
	Compared        bool
	Beside          string // page that compares the two releases; empty if there is nothing to compare with
	Nodes           []coverage
	NodesCut        bool // there are more node types than are shown
	Commands        []command
	Offers          []offer
	There           bool // the destination has the release already
}

func promotionPage(config *Config, r *http.Request) (answer, error) {
	ctx, model, name := r.Context(), r.PathValue("model"), r.PathValue("environment")
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return answer{}, err
	}
	from, to, err := environments.Edge("", name)
	if err != nil {
		return answer{}, err
	}
	d, err := askPolicy(ctx, config, api.PromoteRequest{Model: model, From: from.Name, To: to.Name})
	if err != nil {
		return answer{}, err
	}
	source, err := readHead(ctx, config.Registry, from.Name, model)
	if err != nil {
		return answer{}, err
	}
	destination, err := readHead(ctx, config.Registry, to.Name, model)
	if err != nil {
		return answer{}, err
	}
	view := promotionView{
		decision: d, There: source.Release == destination.Release, Model: model, ModelURL: modelURL(model), ReleaseURL: releaseURL(model, source.Release, from.Name), Digest: digestOf(source.Release),
	}
	view.link(from.Name)
	if view.Now, err = readCell(ctx, config, to, destination); err != nil {
		return answer{}, err
	}
	if view.Changes, view.Compared, err = releaseChanges(ctx, config.Registry, source, destination); err != nil {
		return answer{}, err
	}
	if view.Compared && !view.There {
		view.Beside = compareURL(model, destination.Release, source.Release)
	}
	if view.Nodes, view.NodesCut, err = readCoverage(ctx, config, model, at{from.Name, source.Release}, at{to.Name, destination.Release}); err != nil {
		return answer{}, err
	}
	view.offer(ctx, to.Name, source.Release, destination.Release)
	address, ref := addressOf(config.URL, r), registry.Ref{Environment: from.Name, Model: model, Digest: source.Release}.String()
	view.Commands = []command{
		{"See what would happen", "mlpromote promote " + ref + " --to " + to.Name + " --dry-run --registry " + address},
		{"Promote it", "mlpromote promote " + ref + " --to " + to.Name + " --registry " + address},
	}
	return answer{
		template: "promotion", title: model + " to " + to.Name, nav: "Models", body: view, live: withQuery(apiPath+"/events", "model", model),
		api: promotionAPI(model, to.Name, source.Release),
	}, nil
}

// link gives the proofs of requirements their addresses in an environment.
func (view *promotionView) link(environment string) {
	for i := range view.Groups {
		g := &view.Groups[i]
		for _, proof := range g.Evidence {
			g.Proofs = append(g.Proofs, link{proof.Short, modelAPI(view.Model, "bundle", "environment", environment, "digest", proof.Full)})
		}
	}
}

// offer adds what can be decided about a release that would replace another one.
func (view *promotionView) offer(ctx context.Context, environment string, release, replaces registry.Digest) {
	for _, action := range []string{actPromote, actApprove, actWithdraw} {
		f := form{Action: action, Environment: environment, Model: view.Model, Release: release}
		if action == actPromote {
			f.Replaces = replaces
		}
		if release != "" && (action != actPromote || view.State.Class == classGood && !view.There) {
			view.Offers = append(view.Offers, offers(ctx, f)...)
		}
	}
}
