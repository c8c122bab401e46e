package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// promotionView is the page of a promotion: what it needs and has, and what it would change.
type promotionView struct {
	decision
	Model, ModelURL string
	ReleaseURL      string
	Digest          page.Digest
	Now             cell // what the destination has
	Changes         []string
	Compared        bool
	Beside          string // page that compares the two releases; empty if there is nothing to compare with
	Nodes           []releases.Coverage
	NodesCut        bool // there are more node types than are shown
	Commands        []page.Command
	Offers          []offer
	There           bool // the destination has the release already
}

func promotionPage(config *page.Config, r *http.Request) (page.Answer, error) {
	ctx, model, name := r.Context(), r.PathValue("model"), r.PathValue("environment")
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return page.Answer{}, err
	}
	from, to, err := environments.Edge("", name)
	if err != nil {
		return page.Answer{}, err
	}
	d, err := askPolicy(ctx, config, api.PromoteRequest{Model: model, From: from.Name, To: to.Name})
	if err != nil {
		return page.Answer{}, err
	}
	source, err := readHead(ctx, config.Registry, from.Name, model)
	if err != nil {
		return page.Answer{}, err
	}
	destination, err := readHead(ctx, config.Registry, to.Name, model)
	if err != nil {
		return page.Answer{}, err
	}
	view := promotionView{
		decision: d, There: source.Release == destination.Release, Model: model, ModelURL: page.ModelURL(model), ReleaseURL: page.ReleaseURL(model, source.Release, from.Name), Digest: page.DigestOf(source.Release),
	}
	view.link(from.Name)
	if view.Now, err = readCell(ctx, config, to, destination); err != nil {
		return page.Answer{}, err
	}
	if view.Changes, view.Compared, err = releaseChanges(ctx, config.Registry, source, destination); err != nil {
		return page.Answer{}, err
	}
	if view.Compared && !view.There {
		view.Beside = page.CompareURL(model, destination.Release, source.Release)
	}
	if view.Nodes, view.NodesCut, err = releases.ReadCoverage(ctx, config, model, releases.At{Environment: from.Name, Release: source.Release}, releases.At{Environment: to.Name, Release: destination.Release}); err != nil {
		return page.Answer{}, err
	}
	view.offer(ctx, to.Name, source.Release, destination.Release)
	address, ref := page.AddressOf(config.URL, r), registry.Ref{Environment: from.Name, Model: model, Digest: source.Release}.String()
	view.Commands = []page.Command{
		{What: "See what would happen", Text: "mlpromote promote " + ref + " --to " + to.Name + " --dry-run --registry " + address},
		{What: "Promote it", Text: "mlpromote promote " + ref + " --to " + to.Name + " --registry " + address},
	}
	return page.Answer{
		Template: "promotion", Title: model + " to " + to.Name, Nav: "Models", Body: view, Live: page.WithQuery(page.APIPath+"/events", "model", model),
		API: page.PromotionAPI(model, to.Name, source.Release),
	}, nil
}

// link gives the proofs of requirements their addresses in an environment.
func (view *promotionView) link(environment string) {
	for i := range view.Groups {
		g := &view.Groups[i]
		for _, proof := range g.Evidence {
			g.Proofs = append(g.Proofs, page.Link{Text: proof.Short, URL: page.ModelAPI(view.Model, "bundle", "environment", environment, "digest", proof.Full)})
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
		if release != "" && (action != actPromote || view.State.Class == page.ClassGood && !view.There) {
			view.Offers = append(view.Offers, offers(ctx, f)...)
		}
	}
}
