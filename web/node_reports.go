package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

const (
	// maxReports is how many reports of nodes a page reads at most, of those that count and of silent nodes each.
	maxReports = 2000
	// nodesNamed is how many nodes of a group a page names.
	nodesNamed = 50
	// releasesJudged is how many releases a page asks for quarantines at most.
	releasesJudged = 20
)

// reportsView is what nodes of an environment say that they have.
type reportsView struct {
	Environment string
	Model       string // empty: all
	Life        string // how long a report counts; empty: none are taken
	Denied      string // why the reader sees none
	Counts      []reportCount
	Groups      []reported
	Cut         int    // reports that were read, if there are more; 0: all were
	API         string // of the same as JSON
	Silent      string // of silent nodes as JSON

	types map[string]int // how many nodes of a node type have said something that counts
}

// reportCount is how many nodes have a state.
type reportCount struct {
	State page.State
	Text  string
}

// reported is what some nodes have: an engine of a release.
type reported struct {
	Model, ModelURL   string
	Version, URL      string // of the release; no URL if it is gone
	Engine, EngineURL string
	State             page.State
	Why               string      // why the engine must not be used
	Last              page.Moment // of the newest report
	Count             int
	Nodes             []reportingNode
	Rest              int // nodes that are not named

	first  storage.NodeReport
	newest time.Time
	order  int
}

// sameReports is what reports of a group have in common.
type sameReports struct {
	model           string
	release, engine registry.Digest
	standing        storage.NodeStanding
}

// The order in which pages list groups.
const (
	nodesInQuarantine = iota
	nodesWithOther
	nodesSilent
	nodesWithHead
)

// reportingNode is one node.
type reportingNode struct {
	Name, Type, By string
	Time           page.Moment
}

// nodeStates are the states of groups, in that order.
func nodeStates() []page.State {
	return []page.State{
		nodesInQuarantine: page.StateOf(page.ClassBad, "in quarantine"), nodesWithOther: page.StateOf(page.ClassWait, "not the head"),
		nodesSilent: page.StateOf(page.ClassPlain, "silent"), nodesWithHead: page.StateOf(page.ClassGood, "head"),
	}
}

// orderOf is the place of a standing in that order.
func orderOf(standing storage.NodeStanding) int {
	switch standing {
	case storage.NodeHasHead:
		return nodesWithHead
	case storage.NodeSilent:
		return nodesSilent
	}
	return nodesWithOther
}

// readReports reads what nodes of an environment say; an empty model means all. Nil where the service shows none.
func readReports(ctx context.Context, config *page.Config, environment, model string) (*reportsView, error) {
	if config.Nodes == nil {
		return nil, nil
	}
	view := &reportsView{
		Environment: environment, Model: model, API: page.WithQuery(page.APIPath+"/node-reports", "environment", environment, "model", model),
		Silent: page.WithQuery(page.APIPath+"/node-reports", "environment", environment, "model", model, "silent", "true"), types: make(map[string]int),
	}
	if config.Nodes.Life <= 0 {
		return view, nil
	}
	view.Life = page.ShortDuration(config.Nodes.Life)
	heads, err := config.Registry.Heads(ctx, environment, model)
	if err != nil {
		return view.without(err)
	}
	groups := make(map[sameReports]*reported)
	for _, list := range []lister{config.Nodes.From.NodeReports, config.Nodes.From.SilentNodes} {
		all, cut, err := allReports(ctx, list, environment, model)
		if err != nil {
			return view.without(err)
		}
		if cut {
			view.Cut = maxReports
		}
		for _, r := range all {
			if g := addReport(config.Now, groups, r, headOf(heads, r)); g.order != nodesSilent {
				view.types[r.NodeType]++
			}
		}
	}
	for _, g := range groups {
		view.Groups = append(view.Groups, *g)
	}
	return view, judgeReports(ctx, config.Registry, view)
}

// without is the view of a reader who may see no reports.
func (v *reportsView) without(err error) (*reportsView, error) {
	if !registry.HasCode(err, registry.CodeForbidden) {
		return nil, err
	}
	v.Denied = "You may not read " + registry.PlainText(v.Environment) + ", so what its nodes report is not shown."
	return v, nil
}

// lister lists a page of reports.
type lister func(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error)

// allReports reads all pages, but not more than a page of ours counts.
func allReports(ctx context.Context, list lister, environment, model string) (all []storage.NodeReport, cut bool, err error) {
	for after := ""; ; {
		found, err := list(ctx, environment, model, after, storage.MaxPage)
		if err != nil {
			return nil, false, err
		}
		all = append(all, found.Items...)
		if found.Next == "" || len(all) >= maxReports {
			return all[:min(len(all), maxReports)], found.Next != "" || len(all) > maxReports, nil
		}
		after = found.Next
	}
}

// headOf is the release that is the head where a node reports; empty if there is none.
func headOf(heads []history.Head, r storage.NodeReport) registry.Digest {
	i := slices.IndexFunc(heads, func(h history.Head) bool { return h.Environment == r.Environment && h.Model == r.Model })
	if i < 0 {
		return ""
	}
	return heads[i].Release
}

// addReport adds a report to those of nodes that have the same and stand the same.
func addReport(now storage.Clock, groups map[sameReports]*reported, r storage.NodeReport, head registry.Digest) *reported {
	standing := r.Standing(head, now())
	key := sameReports{r.Model, r.Release, r.Engine, standing}
	g, ok := groups[key]
	if !ok {
		g = &reported{
			Model: registry.PlainText(r.Model), ModelURL: page.ModelURL(r.Model), Version: registry.PlainText(r.Version), URL: page.ReleaseURL(r.Model, r.Release, r.Environment),
			Engine: registry.PlainText(r.Label), EngineURL: page.EngineURL(r.Model, r.Engine, r.Environment), first: r,
		}
		g.stand(orderOf(standing))
		groups[key] = g
	}
	g.Count++
	if r.ReportedOn.After(g.newest) {
		g.newest, g.Last = r.ReportedOn, page.MomentOf(now, r.ReportedOn)
	}
	if len(g.Nodes) == nodesNamed {
		g.Rest++
		return g
	}
	g.Nodes = append(g.Nodes, reportingNode{
		registry.PlainText(r.Node), registry.PlainText(r.NodeType), registry.PlainText(page.NameOf(r.Reporter)), page.MomentOf(now, r.ReportedOn),
	})
	return g
}

// stand gives a group its state.
func (g *reported) stand(order int) { g.order, g.State = order, nodeStates()[order] }

// judgeReports says which groups have what is in quarantine, and puts the groups in order.
func judgeReports(ctx context.Context, reg api.Interface, view *reportsView) error {
	slices.SortFunc(view.Groups, func(a, b reported) int { return cmp.Compare(b.newest.UnixNano(), a.newest.UnixNano()) })
	seen := make(map[registry.Digest]releases.Read)
	for i := range view.Groups {
		g := &view.Groups[i]
		in, known := seen[g.first.Release]
		if !known && len(seen) == releasesJudged {
			g.Why = "not looked at: it may be in quarantine, which its page shows" // nodes that report many releases must not hide one
			continue
		}
		if !known {
			var err error
			in, err = releases.ReadRelease(ctx, reg, g.first.Environment, g.first.Model, string(g.first.Release))
			if err != nil && !registry.HasCode(err, registry.CodeNotFound) && !registry.HasCode(err, registry.CodeForbidden) {
				return err
			}
			if seen[g.first.Release] = in; registry.HasCode(err, registry.CodeNotFound) {
				g.URL, g.EngineURL = "", ""
			}
		}
		for _, d := range []registry.Digest{g.first.Release, g.first.Engine} {
			for _, c := range evidence.Quarantines(in.Release, in.Claims, d) {
				g.Why = registry.PlainText(c.Reason())
			}
		}
		if g.Why != "" && g.order != nodesSilent {
			g.stand(nodesInQuarantine)
		}
	}
	slices.SortStableFunc(view.Groups, func(a, b reported) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Model, b.Model))
	})
	view.count()
	return nil
}

// count says how many nodes are in which state.
func (v *reportsView) count() {
	counts := make([]int, len(nodeStates()))
	for _, g := range v.Groups {
		counts[g.order] += g.Count
	}
	for i, n := range counts {
		if n > 0 {
			v.Counts = append(v.Counts, reportCount{nodeStates()[i], registry.Count(n, "node")})
		}
	}
}
