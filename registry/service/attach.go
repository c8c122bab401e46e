package service

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Attach adds evidence after checking who signed it and for what.
func (s *Service) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	r, err := s.Release(ctx, a.Environment, a.Model, string(a.Release))
	if err != nil {
		return "", err
	}
	subject, err := subjectOf(r, a.Subject)
	if err != nil {
		return "", err
	}
	claim, err := s.admit(ctx, a)
	if err != nil {
		return "", err
	}
	repository := registry.Repository(a.Environment, a.Model)
	bundle := registry.Bundle{PredicateType: claim.Statement.PredicateType, Data: a.Bundle}
	stored, err := s.Content.PutEvidence(ctx, repository, bundle, []registry.Subject{subject})
	if err != nil {
		return "", err
	}
	_, err = s.apply(ctx, registry.Change{Event: registry.Event{
		Time: s.Now(), Kind: registry.EventAttach, Environment: a.Environment, Model: a.Model, Version: r.Tag(),
		Release: r.Digest, Subject: a.Subject, PredicateType: claim.Statement.PredicateType, Evidence: stored, Signer: claim.Signer,
	}})
	return stored[0], err
}

func subjectOf(r registry.Release, d registry.Digest) (registry.Subject, error) {
	for _, subject := range r.Subjects() {
		if subject.Digest == d {
			return subject, nil
		}
	}
	return registry.Subject{}, registry.Errorf(registry.CodeNotFound, "%s is no engine of release %s", d, r.Digest)
}

// admit checks that the bundle is signed by a key whose role may say what it says.
func (s *Service) admit(ctx context.Context, a registry.Attachment) (registry.Claim, error) {
	resource := s.resource(a.Environment, a.Model)
	claim, err := s.Verify(ctx, a.Bundle, resource)
	if err != nil {
		return registry.Claim{}, err
	}
	role, known := registry.RoleFor(claim.Statement.PredicateType)
	switch {
	case !known:
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "attach: predicate type %q is not known here", claim.Statement.PredicateType)
	case !slices.Contains(claim.Roles, role):
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "attach: key %s is not trusted as %s for %s (environments.yaml, trust:)", claim.Signer, role, resource)
	case !claim.Statement.About(a.Subject):
		return registry.Claim{}, registry.Errorf(registry.CodeTrust, "attach: the statement is not about %s", a.Subject)
	}
	return claim, nil
}
