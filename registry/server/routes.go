package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
)

// route is an operation with its handler.
type route struct {
	rest.Row
	query  []string // allowed query parameters
	handle handler
}

// handler answers the requests of a route.
type handler func(s server, r *request) (*response, error)

// request is a request with its route's parameters.
type request struct {
	*http.Request
	Name   string // of the model, or the value of {name} in the path
	Values query
	writer http.ResponseWriter
}

// modelPrefix is the prefix of paths of operations on a model.
const modelPrefix = rest.ModelsPath + "{model}/"

// handlers are the operations that are more than a call of the registry: they page through something, ask a part of the
// [Config], or answer with headers of their own. The others are answered by their row, see [served].
func handlers() map[rest.Any]handler {
	all := map[rest.Any]handler{
		rest.OpenAPI: server.openAPI, rest.Heads: server.heads, rest.Targets: server.targets, rest.History: server.history, rest.HistoryFaults: server.verification,
		rest.NodeReports: server.nodeReports, rest.ReportNode: server.reportNode, rest.Checkpoint: server.checkpoint, rest.Checkpoints: server.checkpoints,
		rest.Proof: server.proof, rest.Events: server.events, rest.PromotionEvent: server.promotion, rest.ResolveFacts: server.resolveFacts, rest.Resolve: server.resolveNode,
		rest.Release: server.release, rest.Engines: server.engines, rest.Engine: server.engine, rest.Evidence: server.evidence, rest.Quarantines: server.quarantines,
		rest.Comparison: server.comparison, rest.Bundle: server.bundle, rest.Promotions: server.promotions, rest.AskPromotion: server.promotionCheck,
		rest.ListWebhooks: server.webhooks, rest.AddWebhook: server.addWebhook, rest.GetWebhook: server.webhook, rest.PutWebhook: server.putWebhook, rest.DeleteWebhook: server.deleteWebhook,
		rest.ListTokens: server.tokens, rest.AddToken: server.addToken, rest.GetToken: server.token, rest.RevokeToken: server.revokeToken,
		rest.ConfigurationState: server.configuration, rest.AdoptConfiguration: server.adoptConfiguration, rest.Administration: server.operations,
	}
	handleTable(all, rest.NodeTypes, nodeTypes)
	handleTable(all, rest.Runtimes, runtimes)
	return all
}

// table lists the routes of all operations.
func table() []route {
	own := handlers()
	var all []route
	for _, o := range rest.Table() {
		handle := own[o]
		if handle == nil && o.Served() {
			handle = served(o)
		}
		names, _ := o.Query()
		all = append(all, route{*o.Describe(), names, handle})
	}
	return all
}

// Paths lists the path of each operation that [New] serves, for labels.
func Paths() []string {
	var all []string
	for _, o := range rest.Table() {
		all = append(all, o.Describe().Path)
	}
	return all
}

// served answers requests as the row of an operation says.
func served(o rest.Any) handler {
	names, _ := o.Query()
	paged, status := slices.Contains(names, "cursor"), cmp.Or(o.Describe().Status, http.StatusOK)
	return func(s server, r *request) (*response, error) {
		values := r.Values
		if paged {
			after, limit, err := pageOf(values)
			if err != nil {
				return nil, err
			}
			values = maps.Clone(values)
			values.Set("cursor", after)
			values.Set("limit", strconv.Itoa(limit))
		}
		result, err := o.Serve(r.Context(), s.Registry, rest.Input{Name: r.Name, Query: values, Body: func(into any) error { return read(r, into) }})
		if err != nil {
			if p, ok := result.(api.Promotion); ok {
				err = refusal{error: err, promotion: &p}
			}
			return nil, err
		}
		switch result := result.(type) {
		case rest.None:
			return done()
		case rest.Listed:
			items, next, partial := result.Listed()
			return list(r, items, next, partial)
		}
		return answer(status, result)
	}
}

// validate refuses a route without a permission and an incomplete one.
func (r route) validate() error {
	switch {
	case r.Permission == "":
		return registry.Errorf(registry.CodeInvalid, "server: route %s %s has no permission", r.Method, r.Path)
	case r.handle == nil || r.Method == "" || !strings.HasPrefix(r.Path, rest.Prefix+"/"):
		return registry.Errorf(registry.CodeInvalid, "server: route %q %q is incomplete", r.Method, r.Path)
	}
	return nil
}
