package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
)

// handlers are the operations that are more than a call of the registry: they page through something, ask a part of the
// [Config], or answer with headers of their own. The others are answered by their row, see [served].
func handlers() map[rest.Any]handler {
	all := map[rest.Any]handler{
		rest.OpenAPI: getOpenAPI, rest.Heads: listHeads, rest.Targets: listTargets, rest.History: listHistory, rest.HistoryFaults: listHistoryFaults,
		rest.NodeReports: listNodeReports, rest.ReportNode: reportNode, rest.Checkpoint: getCheckpoint, rest.Checkpoints: listCheckpoints,
		rest.Proof: getProof, rest.Events: getEvents, rest.PromotionEvent: getPromotion, rest.ResolveFacts: resolveFacts, rest.Resolve: resolveNode,
		rest.Release: getRelease, rest.Engines: listEngines, rest.Engine: getEngine, rest.Evidence: listEvidence, rest.Quarantines: listQuarantines,
		rest.Comparison: getComparison, rest.Bundle: getBundle, rest.Promotions: listPromotions, rest.AskPromotion: checkPromotion,
		rest.ListWebhooks: listWebhooks, rest.AddWebhook: addWebhook, rest.GetWebhook: getWebhook, rest.PutWebhook: putWebhook, rest.DeleteWebhook: deleteWebhook,
		rest.ListTokens: listTokens, rest.AddToken: addToken, rest.GetToken: getToken, rest.RevokeToken: revokeToken,
		rest.ConfigurationState: getConfiguration, rest.AdoptConfiguration: adoptConfiguration, rest.Administration: getOperations,
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
