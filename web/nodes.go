package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// maxNode is the maximum size in bytes of a form with a node document.
const maxNode = 256 << 10

// nodesView is the page of node types, runtimes and of what they get.
type nodesView struct {
	Nodes        []nodeRow
	Next         string
	Runtimes     []string
	Environments []string
	Environment  string
	Model        string
	Runtime      string
	Pasted       string // the document of the form
	Covered      bool   // Nodes say which engine they get
	Reported     bool   // Nodes say how many of them report
	Reports      *reportsView
	Answer       *releases.Found // to the document of the form
	Machine      string          // that it describes
	Fault        string          // why it could not be read
}

// nodeRow is a node type, and what it gets.
type nodeRow struct {
	Name     string
	Machine  string
	Software string
	Engine   *releases.Found
	Reports  string // how many nodes of it say what they have; empty where that is not shown
}

func nodesPage(config *page.Config, r *http.Request) (page.Answer, error) {
	view, err := readNodes(config, r, r.URL.Query().Get)
	if err != nil {
		return page.Answer{}, err
	}
	return nodesAnswer(view), nil
}

// resolvePasted answers the form of the page: which engine a pasted node gets. It changes nothing.
func resolvePasted(config *page.Config, r *http.Request) (page.Answer, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxNode)
	if err := r.ParseForm(); err != nil {
		return page.Answer{}, registry.Errorf(registry.CodeInvalid, "the form cannot be read: want at most %d bytes", maxNode)
	}
	for _, name := range []string{"model", "environment", "runtime"} {
		if len(r.PostForm.Get(name)) > page.MaxValue {
			return page.Answer{}, registry.Errorf(registry.CodeInvalid, "%s: want at most %d bytes", name, page.MaxValue)
		}
	}
	view, err := readNodes(config, r, r.PostForm.Get)
	if err != nil {
		return page.Answer{}, err
	}
	view.Pasted = r.PostForm.Get("node")
	if err := answerForm(r.Context(), config, &view); err != nil {
		return page.Answer{}, err
	}
	return nodesAnswer(view), nil
}

func nodesAnswer(view nodesView) page.Answer {
	return page.Answer{Template: "nodes", Title: "Nodes", Nav: "Nodes", Body: view, API: page.APIPath + "/node-types"}
}

// answerForm resolves for the document of the form. What the reader wrote wrongly is said beside it.
func answerForm(ctx context.Context, config *page.Config, view *nodesView) error {
	node, err := config.ReadNode("node", []byte(view.Pasted))
	if err != nil {
		view.Fault = registry.PlainText(err.Error())
		return nil
	}
	view.Machine = releases.Machine(node)
	q := api.ResolveQuery{Environment: view.Environment, Model: view.Model, Node: node}
	if view.Runtime != "" {
		runtime, err := config.Runtimes.Get(ctx, view.Runtime)
		if err != nil {
			view.Fault = registry.PlainText(err.Error())
			return nil
		}
		q.Runtime = &runtime
	}
	f, err := releases.FindEngine(ctx, config.Registry, q)
	view.Answer = &f
	return err
}

func readNodes(config *page.Config, r *http.Request, value func(string) string) (nodesView, error) {
	ctx := r.Context()
	if err := config.Authorize(ctx, storage.PermissionRead, "", ""); err != nil {
		return nodesView{}, err
	}
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return nodesView{}, err
	}
	view := nodesView{Environment: value("environment"), Model: strings.TrimSpace(value("model")), Runtime: value("runtime")}
	for _, e := range environments.List {
		view.Environments = append(view.Environments, e.Name)
	}
	if view.Environment == "" {
		view.Environment = view.Environments[len(view.Environments)-1]
	} else if _, err := environments.Find(view.Environment); err != nil {
		return view, err
	}
	after := value("after")
	nodes, err := config.NodeTypes.List(ctx, after, releases.NodesShown+1)
	if err != nil {
		return view, err
	}
	if len(nodes) > releases.NodesShown {
		nodes = nodes[:releases.NodesShown]
		view.Next = page.WithQuery("/nodes", "after", nodes[len(nodes)-1].Name, "model", view.Model, "environment", view.Environment)
	}
	runtimes, err := config.Runtimes.List(ctx, "", storage.DefaultPage)
	if err != nil {
		return view, err
	}
	for _, named := range runtimes {
		view.Runtimes = append(view.Runtimes, named.Name)
	}
	view.Covered = view.Model != ""
	for _, n := range nodes {
		row := nodeRow{Name: registry.PlainText(n.Name), Machine: releases.Machine(n.Document), Software: software(n.Document.Runtimes)}
		if view.Covered {
			f, err := releases.FindEngine(ctx, config.Registry, api.ResolveQuery{Environment: view.Environment, Model: view.Model, Node: n.Document})
			if err != nil {
				return view, err
			}
			row.Engine = &f
		}
		view.Nodes = append(view.Nodes, row)
	}
	view.Reports, err = readReports(ctx, config, view.Environment, view.Model)
	view.countReports()
	return view, err
}

// countReports adds to each node type how many of its nodes report.
func (v *nodesView) countReports() {
	if v.Reports == nil || v.Reports.Life == "" || v.Reports.Denied != "" || v.Model == "" {
		return
	}
	v.Reported = true
	for i := range v.Nodes {
		v.Nodes[i].Reports = registry.Count(v.Reports.types[v.Nodes[i].Name], "node")
	}
}

// software describes runtimes with their versions.
func software(runtimes map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		all = append(all, name+" "+runtimes[name])
	}
	return registry.PlainText(strings.Join(all, ", "))
}

// choice is the part of a form that chooses a model; its fields have identifiers of their own.
type choice struct {
	ID   string
	View nodesView
}

// Choice returns the fields of either form.
func (v nodesView) Choice(id string) choice { return choice{id, v} }
