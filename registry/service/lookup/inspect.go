// Package lookup reads releases, evidence, heads and node types. It changes nothing. Evidence is verified. Evidence that
// the catalog keeps counts even if a repository lost it.
package lookup

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// Release reads a release of an environment.
func Release(ctx context.Context, s *backend.Backend, environment, model, tagOrDigest string) (artifact.Release, error) {
	e, err := s.Find(environment)
	if err != nil {
		return artifact.Release{}, err
	}
	if tagOrDigest == "" ||
		e.External() && tagOrDigest == artifact.HeadTag { // the mirror follows the head: read the head itself
		head, err := backend.ExistingHead(ctx, s, environment, model)
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
func Claims(
	ctx context.Context, s *backend.Backend,
	environment string,
	r artifact.Release,
) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	if _, err := s.Find(environment); err != nil {
		return nil, evidence.IgnoredEvidence{}, err
	}
	found, err := Evidence(ctx, s, registry.Repository(environment, r.Model), s.Resource(environment, r.Model), r)
	return found.Claims, found.Ignored, err
}

// Engine reads one engine of an environment.
func Engine(ctx context.Context, s *backend.Backend, environment, model string, d registry.Digest) (artifact.Engine, error) {
	repository, err := repository(s, environment, model, d)
	if err != nil {
		return artifact.Engine{}, err
	}
	return s.Content.Engine(ctx, repository, d)
}

// Bundle reads one piece of evidence of an environment.
func Bundle(ctx context.Context, s *backend.Backend, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	repository, err := repository(s, environment, model, d)
	if err != nil {
		return evidence.Bundle{}, err
	}
	return s.Content.Bundle(ctx, repository, d)
}

// repository returns the repository of a model's content, in which d is looked up.
func repository(s *backend.Backend, environment, model string, d registry.Digest) (string, error) {
	if _, err := s.Find(environment); err != nil {
		return "", err
	}
	if err := d.Validate(); err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "digest %q: %w", d, err)
	}
	return registry.Repository(environment, model), registry.ValidateModel(model)
}
