package attachment

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Attest signs a statement of the caller about a release with the attester's key, and attaches it. A statement
// that could never count is refused here, while the person is there to learn it; the policy decides in any case.
func Attest(ctx context.Context, s *backend.Backend, req evidence.AttestRequest) (evidence.Attested, error) {
	who, err := signedIn(ctx)
	if err != nil {
		return evidence.Attested{}, err
	}
	if err := req.Validate(); err != nil {
		return evidence.Attested{}, err
	}
	to, err := s.Find(req.Environment)
	if err != nil {
		return evidence.Attested{}, err
	}
	from := to
	if req.Kind != evidence.AttestQuarantine {
		if from, to, err = s.Environments.Edge("", req.Environment); err != nil {
			return evidence.Attested{}, err
		}
	}
	r, err := lookup.Release(ctx, s, from.Name, req.Model, string(req.Release))
	if err != nil {
		return evidence.Attested{}, err
	}
	done := evidence.Attested{Kind: req.Kind, Environment: to.Name, From: from.Name, Model: r.Model, Version: r.Tag(),
		Release: r.Digest, Subject: r.Digest, Person: who}
	if req.Subject != "" {
		done.Subject = req.Subject
	}
	if err := mayAttest(ctx, s, req, to, r, who); err != nil {
		return evidence.Attested{}, err
	}
	done.Evidence, done.NotIn, err = attest(ctx, s, req, done, r)
	return done, err
}

// signedIn returns the person who sent the request.
func signedIn(ctx context.Context) (evidence.Person, error) {
	p, known := storage.PrincipalOf(ctx)
	if !known || p.Person.Validate() != nil {
		return evidence.Person{}, registry.WithHint(
			registry.Errorf(registry.CodeUnauthenticated, "attest: you are not signed in, so the service cannot sign for you"),
			"send a token of the service or of an issuer that it trusts, or approve with a key of your own")
	}
	return p.Person, nil
}

// mayAttest refuses an approval by a person whom the environment does not list, or who published the
// release. A withdrawal and a quarantine need no list: they only take away.
func mayAttest(ctx context.Context, s *backend.Backend, req evidence.AttestRequest, to policy.Environment, r artifact.Release, who evidence.Person) error {
	if req.Kind != evidence.AttestApproval {
		return nil
	}
	if !to.Approvals.Attested.Lists(who) {
		return registry.WithHint(
			registry.Errorf(registry.CodePolicy, "attest: %s does not count approvals that the service signs for %s", to.Name, who),
			"environments.yaml lists the people under approvals: attested: of the environment")
	}
	publishers, err := lookup.Publishers(ctx, s, to, r)
	if err == nil && slices.ContainsFunc(publishers, who.MayBe) {
		return registry.WithHint(
			registry.Errorf(registry.CodePolicy, "attest: %s published this release or handed in what its builder signed, and so cannot approve it", who),
			"another person must approve")
	}
	return err
}

// attest signs and attaches the statement of a request.
func attest(ctx context.Context, s *backend.Backend, req evidence.AttestRequest, done evidence.Attested,
	r artifact.Release) (stored registry.Digest, notIn []string, err error) {
	subject, err := subjectOf(r, done.Subject)
	if err != nil {
		return "", nil, err
	}
	statement, err := attestation(ctx, s, req, done)
	if err != nil {
		return "", nil, err
	}
	bundle, err := s.Sign(ctx, evidence.RoleAttester, statement)
	if err != nil {
		return "", nil, err
	}
	a := api.Attachment{Environment: done.From, Model: done.Model, Release: done.Release, Subject: done.Subject, Bundle: bundle}
	claim, err := admit(ctx, s, a, s.Now())
	if err != nil {
		return "", nil, err
	}
	return add(ctx, s, a, r, subject, claim)
}

// attestation makes the statement.
func attestation(ctx context.Context, s *backend.Backend, req evidence.AttestRequest, done evidence.Attested) ([]byte, error) {
	about := evidence.StatementSubject{Name: done.Model, Digest: evidence.NewDigestSet(done.Subject)}
	now := s.Now().UTC()
	if req.Kind == evidence.AttestQuarantine {
		return evidence.NewStatement(evidence.PredicateQuarantine,
			evidence.Quarantine{Reason: req.Comment, IssuedOn: now, Person: &done.Person}, about)
	}
	seen, err := history.NewestHash(ctx, s, done.Model)
	if err != nil {
		return nil, err
	}
	return evidence.NewApproval(about, evidence.Approval{History: evidence.NewDigestSet(seen),
		ResourceURI: s.Resource(done.Environment, done.Model), Comment: req.Comment, ApprovedOn: now, ExpiresOn: req.Expires,
		Accepts: req.Accepts, Withdrawn: req.Kind == evidence.AttestWithdrawal, Person: &done.Person,
	})
}
