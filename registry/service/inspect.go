package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Release reads a release of an environment.
func (s *Service) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	e, err := s.find(environment)
	if err != nil {
		return artifact.Release{}, err
	}
	if tagOrDigest == "" ||
		e.External() && tagOrDigest == artifact.HeadTag { // the mirror follows the head: read the head itself
		head, err := s.existingHead(ctx, environment, model)
		if err != nil {
			return artifact.Release{}, err
		}
		tagOrDigest = string(head.Release)
	}
	r, err := s.Content.Release(ctx, registry.Repository(environment, model), tagOrDigest)
	if err != nil {
		return artifact.Release{}, err
	}
	if r.Model != model {
		return artifact.Release{}, registry.Errorf(registry.CodeTrust,
			"release %s in %s says that it is a release of %s, not of %s", r.Digest, environment, r.Model, model)
	}
	if e.External() && tagOrDigest != string(r.Digest) && tagOrDigest != r.Tag() {
		return artifact.Release{}, registry.Errorf(registry.CodeTrust,
			"tag %s of %s on %s names release %s, which says that it is %s: the tag was moved",
			tagOrDigest, registry.Repository(environment, model), e.Registry, r.Digest, r.Tag())
	}
	return r, nil
}

// Claims lists the evidence for a release in its environment.
func (s *Service) Claims(
	ctx context.Context,
	environment string,
	r artifact.Release,
) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	if _, err := s.find(environment); err != nil {
		return nil, evidence.IgnoredEvidence{}, err
	}
	found, err := s.evidence(ctx, registry.Repository(environment, r.Model), s.resource(environment, r.Model), r)
	return found.claims, found.ignored, err
}

// Engine reads one engine of an environment.
func (s *Service) Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error) {
	repository, err := s.repository(environment, model, d)
	if err != nil {
		return artifact.Engine{}, err
	}
	return s.Content.Engine(ctx, repository, d)
}

// Bundle reads one piece of evidence of an environment.
func (s *Service) Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	repository, err := s.repository(environment, model, d)
	if err != nil {
		return evidence.Bundle{}, err
	}
	return s.Content.Bundle(ctx, repository, d)
}

// repository returns the repository of a model's content, in which d is looked up.
func (s *Service) repository(environment, model string, d registry.Digest) (string, error) {
	if _, err := s.find(environment); err != nil {
		return "", err
	}
	if err := d.Validate(); err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "digest %q: %w", d, err)
	}
	return registry.Repository(environment, model), registry.ValidateModel(model)
}
