package service

import (
	"context"

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
	return s.Content.PutEvidence(ctx, m.destination(), registry.Bundle{PredicateType: registry.PredicateVSA, Data: bundle}, subjects)
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
