package service

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// dossier is a release in an environment with all data that resolve needs to choose among its
// engines. It is immutable.
type dossier struct {
	release registry.Release
	engines []contender // best first
}

// contender is an engine with the reasons why it may no longer be used. They are the same for
// every node. The standing checks do not depend on the time; a check that did would need an
// expiry here.
type contender struct {
	registry.Engine
	unmet []string
}

// dossier reads the release at the head, or the one that a tag or digest names. Errors: as
// Release and Claims; CodePolicy if no promoter allowed it in a protected environment.
func (s *Service) dossier(
	ctx context.Context,
	environment registry.Environment,
	model, tagOrDigest string,
) (dossier, error) {
	r, err := s.Release(ctx, environment.Name, model, tagOrDigest)
	if err != nil {
		return dossier{}, err
	}
	d := dossier{release: r}
	for _, e := range ranked(r.Engines) {
		d.engines = append(d.engines, contender{Engine: e})
	}
	if !environment.Protected() {
		return d, nil
	}
	claims, _, err := s.Claims(ctx, environment.Name, r)
	if err != nil {
		return dossier{}, err
	}
	if err := s.summarized(environment.Name, r, claims); err != nil {
		return dossier{}, err
	}
	for i, e := range d.engines {
		for _, unmet := range registry.CheckEngineStanding(s.resource(environment.Name, model), r, e.Engine, claims).Unmet() {
			d.engines[i].unmet = append(d.engines[i].unmet, fmt.Sprintf("%s of %s: %s", unmet.Name, unmet.Subject, unmet.Detail))
		}
	}
	return d, nil
}
