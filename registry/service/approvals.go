package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// verifyAbout verifies a bundle for a resource of a model. An approval is judged by the trust of the
// resource that it names, wherever it is stored: an approver of prod approves releases in staging,
// where the approver need not be trusted. annotated is what the bundle's manifest says that it
// holds, or "" if nothing says so. Errors: those of [storage.VerifyEvidence].
func verifyAbout(ctx context.Context, s *Backend, data []byte, annotated, resource, model string) (evidence.Claim, error) {
	claim, err := s.Verify(ctx, data, resource)
	unknown := registry.HasCode(err, registry.CodeTrust) && mayBeApproval(annotated)
	uri, isApproval := claim.ApprovedResource()
	if err == nil && (!isApproval || uri == resource) || err != nil && !unknown {
		return claim, err
	}
	for _, e := range s.Environments.List {
		named := s.resource(e.Name, model)
		if !e.Protected() || named == resource || isApproval && named != uri {
			continue
		}
		there, refusal := s.Verify(ctx, data, named)
		if refusal != nil && !registry.HasCode(refusal, registry.CodeTrust) {
			return evidence.Claim{}, refusal
		}
		if about, ok := there.ApprovedResource(); refusal == nil && ok && about == named {
			return there, nil
		}
	}
	claim.Roles = nil // those for another resource say nothing about the one that is named
	return claim, err
}

// mayBeApproval reports whether a bundle that is annotated with a predicate type, or with none, may
// hold an approval of either kind.
func mayBeApproval(annotated string) bool {
	return annotated == "" || annotated == evidence.PredicateApproval || annotated == evidence.PredicateBreakGlass
}

// mayApprove refuses an approval that could never count: about an engine alone, or by a key that
// built the release. Policy ignores such approvals too; here their signer learns it.
func mayApprove(ctx context.Context, s *Backend, a api.Attachment, r artifact.Release, subject artifact.Subject, claim evidence.Claim) error {
	if t := claim.Statement.PredicateType; t != evidence.PredicateApproval && t != evidence.PredicateBreakGlass {
		return nil
	}
	if !subject.Index {
		return registry.Errorf(registry.CodeInvalid, "attach: an approval is about a release, and %s is an engine", subject.Digest)
	}
	if approval, _ := claim.Approval(); approval.Withdrawn {
		return nil
	}
	found, err := readEvidence(ctx, s, registry.Repository(a.Environment, a.Model), s.resource(a.Environment, a.Model), r)
	if err != nil {
		return err
	}
	if evidence.IsBuilder(r, found.claims, claim.Signer) {
		return registry.WithHint(
			registry.Errorf(registry.CodeTrust, "attach: key %s signed the build of this release, so it cannot approve it", claim.Signer),
			"another person must approve, with their own key")
	}
	return nil
}
