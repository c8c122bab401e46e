package server

import (
	"mlpromote.dev/mlpromote/registry"
)

// heads lists heads by model and environment. The limit of a page counts models.
func (s server) heads(r *request) (*response, error) {
	environment, model := r.Values.Get("environment"), r.Values.Get("model")
	if model != "" {
		heads, err := s.Registry.Heads(r.Context(), environment, model)
		if err != nil {
			return nil, err
		}
		return ok(nonNil(heads))
	}
	models, err := s.modelPage(r)
	if err != nil {
		return nil, err
	}
	var heads []registry.Head
	for _, m := range models.Items {
		heads = append(heads, m.Heads...)
	}
	return page(r, heads, models.Next)
}

func (s server) modelPage(r *request) (registry.Page[registry.ModelHeads], error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return registry.Page[registry.ModelHeads]{}, err
	}
	return s.Registry.Models(r.Context(), r.Values.Get("environment"), after, limit)
}
