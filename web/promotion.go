package web

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
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

// coverage is the engine that a node type gets of two environments.
type coverage struct {
	Node    string
	Machine string
	Engines []found
	Differs bool
}

// found is the answer of a resolve: an engine, or why there is none.
type found struct {
	Environment string
	Label       string
	URL         string
	Missing     string // why there is no engine; empty if there is one
	Reasons     []candidate
}

// candidate is an engine that was not chosen, and why.
type candidate struct {
	Label   string
	Reasons []string
}

// nodesShown is how many node types a page resolves for.
const nodesShown = 50

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

// promotionAPI is where the API says whether a release may be promoted; without a release, which there are.
func promotionAPI(model, to string, release registry.Digest) string {
	if release == "" {
		return modelAPI(model, "promotions", "environment", to)
	}
	return modelAPI(model, "promotion-check", "environment", to, "digest", string(release))
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

// readHead is a head that the reader may see, or the zero Head.
func readHead(ctx context.Context, reg api.Interface, environment, model string) (history.Head, error) {
	heads, err := reg.Heads(ctx, environment, model)
	return headIn(heads, environment), err
}

// at is a release in an environment; without a digest, its head.
type at struct {
	environment string
	release     registry.Digest
}

// readCoverage resolves releases of a model for each node type. Readers who may read no node types get none.
func readCoverage(ctx context.Context, config *Config, model string, places ...at) (rows []coverage, cut bool, err error) {
	if err := config.Authorize(ctx, storage.PermissionRead, "", ""); registry.HasCode(err, registry.CodeForbidden) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	nodes, err := config.NodeTypes.List(ctx, "", nodesShown+1)
	if err != nil {
		return nil, false, err
	}
	if cut = len(nodes) > nodesShown; cut {
		nodes = nodes[:nodesShown]
	}
	for _, n := range nodes {
		row := coverage{Node: registry.PlainText(n.Name), Machine: machine(n.Document)}
		for _, place := range places {
			f, err := findEngine(ctx, config.Registry, api.ResolveQuery{Environment: place.environment, Model: model, Version: string(place.release), Node: n.Document})
			if err != nil {
				return nil, false, err
			}
			row.Engines = append(row.Engines, f)
		}
		for _, f := range row.Engines {
			row.Differs = row.Differs || f.URL != "" && f.Label != row.Engines[0].Label || f.Missing != row.Engines[0].Missing
		}
		rows = append(rows, row)
	}
	return rows, cut, nil
}

// findEngine resolves, and describes also that there is no engine.
func findEngine(ctx context.Context, reg api.Interface, q api.ResolveQuery) (found, error) {
	f := found{Environment: q.Environment}
	answer, err := reg.Resolve(ctx, q)
	for _, c := range answer.Candidates {
		if c.Chosen {
			continue
		}
		rejected := candidate{Label: registry.PlainText(c.Label)}
		for _, reason := range c.Reasons {
			rejected.Reasons = append(rejected.Reasons, registry.PlainText(reason))
		}
		f.Reasons = append(f.Reasons, rejected)
	}
	switch code := registry.CodeOf(err); {
	case err == nil && answer.Engine != nil:
		f.Label, f.URL = answer.Engine.Label(), engineURL(q.Model, answer.Engine.Digest, q.Environment)
	case err == nil, code == registry.CodeNoEngine:
		f.Missing = "no engine fits"
	case code == registry.CodeNotFound:
		f.Missing = "nothing is there"
	case code == registry.CodePolicy, code == registry.CodeForbidden, code == registry.CodeTrust, code == registry.CodeDigest, code == registry.CodeInvalid:
		text, _ := registry.TextForClients(err)
		f.Missing = registry.PlainText(text)
	default:
		return f, err
	}
	return f, nil
}

// addressOf is the address of this service: the configured one, or that at which the reader reached it.
func addressOf(configured string, r *http.Request) string {
	if configured != "" {
		return configured
	}
	scheme := "http://"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https://"
	}
	return scheme + registry.PlainText(r.Host)
}
