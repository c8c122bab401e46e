package client

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/rest"
)

// Release asks the service for the digest of a release and reads the release by digest, so that
// the digest verifies it.
func (c *Client) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	meant, err := c.Interface.Release(ctx, environment, model, tagOrDigest)
	if err != nil {
		return artifact.Release{}, err
	}
	if err := meant.Digest.Validate(); err != nil {
		return artifact.Release{}, c.strange("release", err)
	}
	if asked := registry.Digest(tagOrDigest); asked.Validate() == nil && asked != meant.Digest {
		return artifact.Release{}, registry.Errorf(registry.CodeDigest,
			"the request to %s was for release %s, but the response has %s", c.base, asked, meant.Digest)
	}
	r, err := c.content.Release(ctx, registry.Repository(environment, model), string(meant.Digest))
	if err == nil && r.Model != model {
		return artifact.Release{}, registry.Errorf(registry.CodeTrust,
			"release %s in %s says that it is a release of %s, not of %s", r.Digest, environment, r.Model, model)
	}
	return r, err
}

// Claims lists evidence with the service's verification of it.
func (c *Client) Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	var found rest.Claims
	if _, err := c.send(ctx, &rest.Evidence.Row, rest.ReleaseQuery{Environment: environment, Model: r.Model, Ref: string(r.Digest)}, &found); err != nil {
		return nil, evidence.IgnoredEvidence{}, err
	}
	var ignored evidence.IgnoredEvidence
	ignored.IgnoreAll(evidence.IgnoredEvidence{Ignored: found.Ignored, IgnoredCount: found.IgnoredCount})
	return found.Claims, ignored, nil
}

// Engine reads one engine and verifies it by its digest.
func (c *Client) Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error) {
	return c.content.Engine(ctx, registry.Repository(environment, model), d)
}

// Bundle reads one piece of evidence and verifies it by its digest.
func (c *Client) Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	return c.content.Bundle(ctx, registry.Repository(environment, model), d)
}
