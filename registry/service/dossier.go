package service

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// dossier is a release in an environment, with all that a resolve needs to judge it: in a
// protected environment the evidence whose signatures verified, read. It is not changed.
type dossier struct {
	release registry.Release
	engines []contender // best first
}

// contender is an engine with the evidence about it and about its release.
type contender struct {
	registry.Engine
	claims []registry.Claim
}

// dossier reads the release that is the head, or that a tag or digest names. Errors: as
// Release and Claims; CodePolicy where no promoter allowed it in a protected environment.
func (s *Service) dossier(ctx context.Context, environment registry.Environment, model, tagOrDigest string) (dossier, error) {
	r, err := s.Release(ctx, environment.Name, model, tagOrDigest)
	if err != nil {
		return dossier{}, err
	}
	var claims []registry.Claim
	if environment.Protected() {
		if claims, _, err = s.Claims(ctx, environment.Name, r); err != nil {
			return dossier{}, err
		}
		if err := s.summarized(environment.Name, r, claims); err != nil {
			return dossier{}, err
		}
	}
	about := make(map[registry.Digest][]registry.Claim)
	for _, c := range claims {
		about[c.Subject] = append(about[c.Subject], c.Read())
	}
	d := dossier{release: r}
	for _, e := range ranked(r.Engines) {
		d.engines = append(d.engines, contender{e, slices.Concat(about[r.Digest], about[e.Digest])})
	}
	return d, nil
}
