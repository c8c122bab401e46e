package server

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// checkPromotion says whether a release may be promoted. What cannot be decided is an error with a status of its
// own, so that only a decision is 200. The release is named, since a head moves between the answer and its use.
func checkPromotion(s server, r *request) (*response, error) {
	to, err := environmentOf(r.Values)
	if err != nil {
		return nil, err
	}
	if len(r.Values["environment"]) > 1 || len(r.Values["version"]) > 1 || len(r.Values["digest"]) > 1 {
		return nil, registry.Errorf(registry.CodeInvalid, "query: want one environment, one version and one digest at most")
	}
	checks := api.PromotionChecks{Registry: s.Registry, Preview: s.Preview, Pages: s.URL}
	check, err := checks.PromotionCheck(r.Context(), api.PromotionQuery{
		Model: r.Name, Environment: to, Version: r.Values.Get("version"), Digest: registry.Digest(r.Values.Get("digest"))})
	if err != nil {
		return nil, err
	}
	return ok(check)
}
