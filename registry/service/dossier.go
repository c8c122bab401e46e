package service

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
)

// dossier is a release in an environment, with all that a resolve needs to choose of its
// engines. It is not changed.
type dossier struct {
	release registry.Release
	engines []contender // best first
}

// contender is an engine, and why it may not be used any more: the same for every node.
// The standing checks know no time. A rule that did would have to say until when its answer
// holds.
type contender struct {
	registry.Engine
	unmet []string
}

// dossier reads the release that is the head, or that a tag or digest names. Errors: as
// Release and Claims; CodePolicy where no promoter allowed it in a protected environment.
func (s *Service) dossier(ctx context.Context, environment registry.Environment, model, tagOrDigest string) (dossier, error) {
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
