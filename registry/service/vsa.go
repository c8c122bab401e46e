package service

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// verifierID prefixes the registry's name in the verifier of a summary.
const verifierID = "https://mlpromote.dev/service/"

// summarize signs that the release met the policy of the destination and attaches
// that there to the release and to every engine.
func (s *Service) summarize(ctx context.Context, m move) ([]registry.Digest, error) {
	historyHead, err := s.lastEvent(ctx)
	if err != nil {
		return nil, err
	}
	subjects := m.release.Subjects()
	named := make([]registry.StatementSubject, len(subjects))
	for i, subject := range subjects {
		named[i] = registry.StatementSubject{Name: subject.Name, Digest: registry.NewDigestSet(subject.Digest)}
	}
	statement, err := registry.NewStatement(registry.PredicateVSA, s.vsa(m, historyHead), named...)
	if err != nil {
		return nil, err
	}
	bundle, err := s.Sign(ctx, registry.RolePromoter, statement)
	if err != nil {
		return nil, err
	}
	if err := s.acceptable(ctx, bundle, m); err != nil {
		return nil, err
	}
	return s.Content.PutEvidence(ctx, m.destination(), registry.Bundle{PredicateType: registry.PredicateVSA, Data: bundle}, subjects)
}

// acceptable checks that who reads the summary in the destination will accept it. A head
// that moves on a summary of an untrusted key could not be resolved by anybody.
func (s *Service) acceptable(ctx context.Context, bundle []byte, m move) error {
	resource := s.resource(m.to.Name, m.release.Model)
	claim, err := s.Verify(ctx, bundle, resource)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "the promoter's own summary for %s: %w", resource, err)
	}
	if !slices.Contains(claim.Roles, registry.RolePromoter) {
		return registry.Errorf(registry.CodeTrust, "key %s signs as promoter and is not trusted as one for %s: nobody would accept its summary (environments.yaml, trust:)", claim.Signer, resource)
	}
	return nil
}

func (s *Service) vsa(m move, historyHead registry.Digest) registry.VSA {
	inputs := make([]registry.VSADescriptor, len(m.accepted))
	for i, c := range m.accepted {
		inputs[i] = registry.VSADescriptor{Digest: registry.NewDigestSet(c.Bundle)}
	}
	return registry.VSA{
		Verifier:           registry.VSAVerifier{ID: verifierID + s.Config.Environments.Registry, Version: map[string]string{s.Tool.Name: s.Tool.Version}},
		TimeVerified:       s.Now().UTC(),
		ResourceURI:        s.resource(m.to.Name, m.release.Model),
		Policy:             registry.VSAPolicy{URI: "environments.yaml#" + m.to.Name, Digest: registry.NewDigestSet(s.Config.Environments.Digest)},
		InputAttestations:  inputs,
		VerificationResult: registry.VSAPassed,
		VerifiedLevels:     []string{registry.VSALevelParity},
		SLSAVersion:        registry.SLSAVersion,
		Promotion: registry.VSAPromotion{
			From: m.from.Name, Tag: m.release.Tag(), Sources: registry.NewDigestSet(m.release.Sources),
			PreviousHead: registry.NewDigestSet(m.before.Release), HistoryHead: registry.NewDigestSet(historyHead),
		},
	}
}
