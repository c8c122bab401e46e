// Package resolution chooses the engine that a node gets of a release, and replays that under other rules.
package resolution

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/service/lookup"
)

// Resolvable is a release in an environment with all data that resolve needs to choose among its
// engines. It is immutable.
type Resolvable struct {
	release artifact.Release
	engines []ratedEngine              // best first
	lost    []evidence.AdverseEvidence // which only the catalog has
}

// ratedEngine is an engine with the requirements that it does not meet. Some are unmet only for
// some nodes. The standing checks do not depend on the time; a check that did would need an
// expiry here.
type ratedEngine struct {
	artifact.Engine
	unmet []policy.Requirement
}

// refused lists why no node gets the engine.
func (e ratedEngine) refused() []string {
	var reasons []string
	for _, unmet := range e.unmet {
		if !unmet.SomeNodes() {
			reasons = append(reasons, reason(unmet))
		}
	}
	return reasons
}

func reason(unmet policy.Requirement) string {
	return fmt.Sprintf("%s of %s: %s", unmet.Name, unmet.Subject, unmet.Detail)
}

// Read reads the release at the head, or the one that a tag or digest names. Errors: as
// Release and Claims; CodePolicy if no promoter allowed it in a protected environment.
func Read(
	ctx context.Context, s *backend.Backend,
	environment policy.Environment,
	model, tagOrDigest string,
) (Resolvable, error) {
	r, err := lookup.Release(ctx, s, environment.Name, model, tagOrDigest)
	if err != nil {
		return Resolvable{}, err
	}
	d := Resolvable{release: r}
	for _, e := range r.Ranked() {
		d.engines = append(d.engines, ratedEngine{Engine: e})
	}
	standing, found, err := engineChecks(ctx, s, environment, r)
	if err == nil && environment.Protected() {
		err = summarized(s, environment.Name, r, found.Claims)
	}
	if err != nil {
		return Resolvable{}, err
	}
	d.lost = found.Lost
	for i, e := range d.engines {
		d.engines[i].unmet = standing(e.Engine)
	}
	return d, nil
}

// engineChecks returns what lists the requirements that an engine of the release does not meet in
// an environment, and the evidence about the release if it read it. Without from, only restrictions
// apply. Errors: as Claims.
func engineChecks(
	ctx context.Context, s *backend.Backend,
	environment policy.Environment,
	r artifact.Release,
) (func(artifact.Engine) []policy.Requirement, lookup.ReleaseEvidence, error) {
	restrictions, err := documents.RestrictionsIn(ctx, s, environment.Name)
	if err != nil {
		return nil, lookup.ReleaseEvidence{}, err
	}
	if !environment.Protected() && !restrictions.Exist() {
		return func(artifact.Engine) []policy.Requirement { return nil }, lookup.ReleaseEvidence{}, nil
	}
	resource := s.Resource(environment.Name, r.Model)
	found, err := lookup.Evidence(ctx, s, registry.Repository(environment.Name, r.Model), resource, r)
	if err != nil {
		return nil, lookup.ReleaseEvidence{}, err
	}
	if !environment.Protected() {
		return func(e artifact.Engine) []policy.Requirement {
			return policy.CheckRestrictions(restrictions, r, e, found.Claims).Unmet()
		}, found, nil
	}
	return func(e artifact.Engine) []policy.Requirement {
		return policy.CheckEngineStanding(resource, r, e, found.Claims, restrictions).Unmet()
	}, found, nil
}

// summarized refuses a release that no trusted promoter allowed in the environment.
func summarized(s *backend.Backend, environment string, r artifact.Release, claims []evidence.Claim) error {
	if _, _, ok := policy.FindVSA(claims, r, s.Resource(environment, r.Model)); ok {
		return nil
	}
	return registry.Errorf(registry.CodePolicy,
		"%s %s in %s has no verification summary of a trusted promoter: promote it again", r.Model, r.Tag(), environment)
}

// Refused lists the engines that resolve refuses on every node.
func (d Resolvable) Refused() []string {
	var warnings []string
	for _, e := range d.engines {
		if reasons := e.refused(); len(reasons) > 0 {
			warnings = append(warnings,
				fmt.Sprintf("resolve refuses %s of %s on every node: %s", e.Label(), d.release.Tag(), reasons[0]))
		}
	}
	return warnings
}
