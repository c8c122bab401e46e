package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry/api"
)

// handlers are the operations that are more than a call of the registry: they page through something, ask a part of the
// [Config], or answer with headers of their own. The others are answered by their row, see [served].
func handlers() map[api.Any]handler {
	all := map[api.Any]handler{
		api.OpenAPI: getOpenAPI, api.Heads: listHeads, api.Targets: listTargets, api.History: listHistory, api.HistoryFaults: listHistoryFaults,
		api.NodeReports: listNodeReports, api.ReportNode: reportNode, api.Checkpoint: getCheckpoint, api.Checkpoints: listCheckpoints,
		api.Proof: getProof, api.Events: getEvents, api.PromotionEvent: getPromotion, api.ResolveFacts: resolveFacts, api.Resolve: resolveNode,
		api.Release: getRelease, api.Engines: listEngines, api.Engine: getEngine, api.Evidence: listEvidence, api.Quarantines: listQuarantines,
		api.Comparison: getComparison, api.Bundle: getBundle, api.Promotions: listPromotions, api.AskPromotion: checkPromotion,
		api.ListWebhooks: listWebhooks, api.AddWebhook: addWebhook, api.GetWebhook: getWebhook, api.PutWebhook: putWebhook, api.DeleteWebhook: deleteWebhook,
		api.ListTokens: listTokens, api.AddToken: addToken, api.GetToken: getToken, api.RevokeToken: revokeToken,
		api.ConfigurationState: getConfiguration, api.AdoptConfiguration: adoptConfiguration, api.Administration: getOperations,
	}
	handleTable(all, api.NodeTypes, nodeTypes)
	handleTable(all, api.Runtimes, runtimes)
	return all
}

// table lists the routes of all operations.
func table() []route {
	own := handlers()
	var all []route
	for _, o := range api.Table() {
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
	for _, o := range api.Table() {
		all = append(all, o.Describe().Path)
	}
	return all
}

// served answers requests as the row of an operation says.
func served(o api.Any) handler {
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
		result, err := o.Serve(r.Context(), s.Registry, api.Input{Name: r.Name, Query: values, Body: func(into any) error { return read(r, into) }})
		if err != nil {
			if p, ok := result.(api.Promotion); ok {
				err = refusal{error: err, promotion: &p}
			}
			return nil, err
		}
		switch result := result.(type) {
		case api.None:
			return done()
		case api.Listed:
			items, next, partial := result.Listed()
			return list(r, items, next, partial)
		}
		return answer(status, result)
	}
}
