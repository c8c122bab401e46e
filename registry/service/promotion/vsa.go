package promotion

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// summarize signs that the release met the policy of the destination. It attaches the summary
// there to the release and to every engine. It reuses the summary of an earlier round if that
// is still correct.
func summarize(ctx context.Context, s *backend.Backend, m *move) error {
	says := summary{previous: m.basis.Head.Release, skipped: m.skipped()}
	for _, c := range m.accepted {
		if c.Statement.PredicateType != evidence.PredicateVSA { // such as summaries of earlier rounds
			says.accepted = append(says.accepted, c.Bundle)
		}
	}
	if len(m.summary.bundles) > 0 && says.previous == m.summary.previous && says.skipped == m.summary.skipped &&
		slices.Equal(says.accepted, m.summary.accepted) {
		return nil
	}
	var err error
	if says.bundles, says.signer, err = attachSummary(ctx, s, *m); err != nil {
		return err
	}
	m.summary = says
	return nil
}

func attachSummary(ctx context.Context, s *backend.Backend, m move) ([]registry.Digest, string, error) {
	historyHead, err := s.LastEvent(ctx)
	if err != nil {
		return nil, "", err
	}
	subjects := m.release.Subjects()
	named := make([]evidence.StatementSubject, len(subjects))
	for i, subject := range subjects {
		named[i] = evidence.StatementSubject{Name: subject.Name, Digest: evidence.NewDigestSet(subject.Digest)}
	}
	predicate, err := vsa(s, m, historyHead)
	if err != nil {
		return nil, "", err
	}
	statement, err := evidence.NewStatement(evidence.PredicateVSA, predicate, named...)
	if err != nil {
		return nil, "", err
	}
	bundle, err := s.Sign(ctx, evidence.RolePromoter, statement)
	if err != nil {
		return nil, "", err
	}
	signer, err := acceptable(ctx, s, bundle, m)
	if err != nil {
		return nil, "", err
	}
	stored, err := s.Content.PutEvidence(ctx, m.destination(),
		evidence.Bundle{PredicateType: evidence.PredicateVSA, Data: bundle}, subjects)
	return stored, signer, err
}

// acceptable checks that readers in the destination will accept the summary, and returns its
// signer. If the key is untrusted, nodes could not resolve the new head.
func acceptable(ctx context.Context, s *backend.Backend, bundle []byte, m move) (string, error) {
	resource := s.Resource(m.to.Name, m.release.Model)
	claim, err := s.Verify(ctx, bundle, resource)
	switch {
	case registry.HasCode(err, registry.CodeTrust):
		return "", trustPromoter(s, m,
			registry.Errorf(registry.CodeTrust, "the promoter's own summary for %s: %w", resource, err))
	case err != nil:
		return "", registry.Errorf(registry.CodeOf(err), "the promoter's own summary for %s: %w", resource, err)
	case !claim.SignedAs(evidence.RolePromoter):
		return "", trustPromoter(s,
			m,
			registry.Errorf(
				registry.CodeTrust,
				"key %s signs as promoter, but is not trusted as one for %s, so its summary would be refused "+
					"(environments.yaml, trust:)",
				claim.Signer,
				resource,
			),
		)
	case claim.Key != evidence.KeyTrusted:
		return "", registry.WithHint(
			registry.Errorf(registry.CodeTrust,
				"key %s signs as promoter, but is %s, so its summary would be refused (environments.yaml, trust:)",
				claim.Signer, claim.Key),
			"sign with another key: mlpromote key generate --role promoter, and add it to trust:",
		)
	}
	// It is made and recorded now.
	if claim.RecordedAt = s.Now(); !claim.Window.Contains(claim.RecordedAt) {
		return "", registry.WithHint(
			registry.Errorf(registry.CodeTrust, "key %s signs as promoter, but is valid %s, so its summary would be refused (environments.yaml, trust:)",
				claim.Signer, claim.Window),
			"sign with another key: mlpromote key generate --role promoter, and mlpromote trust add")
	}
	return claim.Signer, nil
}

// trustPromoter adds a hint with the line that makes the promoter's key trusted.
func trustPromoter(s *backend.Backend, m move, err error) error {
	return registry.WithHint(
		err,
		"add to trust: in environments.yaml the line   - {key: FILE, roles: [promoter], resources: [%q]}; mlpromote "+
			"environments check names the FILE",
		s.Resource(m.to.Name, ""),
	)
}

func vsa(s *backend.Backend, m move, historyHead registry.Digest) (evidence.VSA, error) {
	policy, err := backend.PolicyDigest(m.to)
	if err != nil {
		return evidence.VSA{}, err
	}
	resource := s.Resource(m.to.Name, m.release.Model)
	inputs := make([]evidence.VSADescriptor, len(m.accepted))
	for i, c := range m.accepted {
		inputs[i] = evidence.VSADescriptor{URI: resource + "@" + string(c.Bundle), Digest: evidence.NewDigestSet(c.Bundle)}
	}
	levels := []string{evidence.VSALevelParity}
	if m.decision.Skipped != nil {
		levels = []string{evidence.VSALevelBreakGlass}
	}
	return evidence.VSA{
		Verifier: evidence.VSAVerifier{
			ID:      evidence.VerifierID(s.Environments.Registry),
			Version: map[string]string{s.Tool.Name: s.Tool.Version},
		},
		TimeVerified: s.Now().UTC(),
		ResourceURI:  resource,
		Policy: evidence.VSAPolicy{
			URI:    "environments.yaml#" + m.to.Name,
			Digest: evidence.NewDigestSet(s.Environments.Digest),
		},
		InputAttestations:  inputs,
		VerificationResult: evidence.VSAPassed,
		VerifiedLevels:     levels,
		SLSAVersion:        "1.0",
		Promotion: evidence.VSAPromotion{
			From: m.from.Name, Tag: m.release.Tag(), Sources: evidence.NewDigestSet(m.release.Sources), Policy: evidence.NewDigestSet(policy),
			PreviousHead: evidence.NewDigestSet(m.basis.Head.Release), HistoryHead: evidence.NewDigestSet(historyHead),
			Skipped: m.decision.Skipped,
		},
	}, nil
}
