package service

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// resolvable is a release in an environment with all data that resolve needs to choose among its
// engines. It is immutable.
type resolvable struct {
	release registry.Release
	engines []ratedEngine // best first
}

// ratedEngine is an engine with the reasons why it may no longer be used. They are the same for
// every node. The standing checks do not depend on the time; a check that did would need an
// expiry here.
type ratedEngine struct {
	registry.Engine
	unmet []string
}

// resolvable reads the release at the head, or the one that a tag or digest names. Errors: as
// Release and Claims; CodePolicy if no promoter allowed it in a protected environment.
func (s *Service) resolvable(
	ctx context.Context,
	environment registry.Environment,
	model, tagOrDigest string,
) (resolvable, error) {
	r, err := s.Release(ctx, environment.Name, model, tagOrDigest)
	if err != nil {
		return resolvable{}, err
	}
	d := resolvable{release: r}
	for _, e := range registry.RankEngines(r.Engines) {
		d.engines = append(d.engines, ratedEngine{Engine: e})
	}
	if !environment.Protected() {
		return d, nil
	}
	claims, _, err := s.Claims(ctx, environment.Name, r)
	if err != nil {
		return resolvable{}, err
	}
	if err := s.summarized(environment.Name, r, claims); err != nil {
		return resolvable{}, err
	}
	for i, e := range d.engines {
		for _, unmet := range registry.CheckEngineStanding(s.resource(environment.Name, model), r, e.Engine, claims).Unmet() {
			d.engines[i].unmet = append(d.engines[i].unmet, fmt.Sprintf("%s of %s: %s", unmet.Name, unmet.Subject, unmet.Detail))
		}
	}
	return d, nil
}
