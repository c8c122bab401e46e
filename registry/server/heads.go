package server

import (
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// listHeads lists heads by model and environment. The limit of a page counts models.
func listHeads(s server, r *request) (*response, error) {
	environment, model := r.Values.Get("environment"), r.Values.Get("model")
	if model != "" {
		heads, err := s.Registry.Heads(r.Context(), environment, model)
		if err != nil {
			return nil, err
		}
		return ok(nonNil(heads))
	}
	models, err := modelPage(s, r)
	if err != nil {
		return nil, err
	}
	var heads []history.Head
	for _, m := range models.Items {
		heads = append(heads, m.Heads...)
	}
	return page(r, heads, models.Next)
}

func modelPage(s server, r *request) (storage.Page[history.ModelHeads], error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return storage.Page[history.ModelHeads]{}, err
	}
	return s.Registry.Models(r.Context(), r.Values.Get("environment"), after, limit)
}
