// Package attachment adds evidence to releases and engines after checking its signer, and signs statements for people.
package attachment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

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

// Attach adds evidence after checking its signer and statement. Reports and quarantines are
// also added in every other environment that has the engine.
func Attach(ctx context.Context, s *backend.Backend, a api.Attachment) (registry.Digest, error) {
	r, damaged, err := about(ctx, s, a)
	if err != nil {
		return "", err
	}
	subject, err := subjectOf(r, a.Subject)
	if err != nil {
		return "", err
	}
	claim, err := admit(ctx, s, a, s.Now())
	if err != nil {
		return "", err
	}
	if subject.Engine != "" && claim.Statement.PredicateType != evidence.PredicateSign {
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"attach: %s is the image form of engine %s, about which only signatures are attached", subject.Digest, subject.Engine),
			"name the engine: what counts for it counts for its image form")
	}
	if _, quarantine := claim.Quarantine(); damaged != nil && !quarantine {
		return "", damaged
	}
	if p := claim.Attested(); p != nil && !claim.Against() {
		return "", registry.WithHint(
			registry.Errorf(registry.CodeTrust, "attach: it speaks for %s: only the service itself attaches what it signed for people", p),
			"the person asks the service: POST models/MODEL/attestations")
	}
	if e, err := s.Environments.Find(a.Environment); err != nil {
		return "", err
	} else if !MayReach(ctx, e, a.Model, claim) {
		return "", registry.Errorf(registry.CodeForbidden, "attach: it speaks for %s, and you may not attest in %s", claim.Attested(), a.Environment)
	}
	if err := mayApprove(ctx, s, a, r, subject, claim); err != nil {
		return "", err
	}
	stored, _, err := add(ctx, s, a, r, subject, claim)
	return stored, err
}

// add adds admitted evidence, in all environments if it spreads. notIn are environments that have the
// subject, and to which it does not spread because the caller may not speak for people there.
func add(
	ctx context.Context, s *backend.Backend,
	a api.Attachment,
	r artifact.Release,
	subject artifact.Subject,
	claim evidence.Claim,
) (stored registry.Digest, notIn []string, err error) {
	stored, err = attach(ctx, s, a, r, subject, claim)
	if err != nil || !evidence.Spreads(claim.Statement.PredicateType) {
		return stored, nil, err
	}
	notIn, err = spread(ctx, s, a, r, subject)
	return stored, notIn, err
}

// MayReach reports whether a statement may come to an environment. One that the service signed for a person has
// the service's key, which is trusted everywhere: so the caller must have the permission there, or the
// environment must list the person. Without a principal the caller is a local user of the data directory.
func MayReach(ctx context.Context, e policy.Environment, model string, claim evidence.Claim) bool {
	who := claim.Attested()
	caller, known := storage.PrincipalOf(ctx)
	return who == nil || !known || caller.May(storage.PermissionAttest, e.Name, model) || e.Approvals.Attested.Lists(*who)
}

func subjectOf(r artifact.Release, d registry.Digest) (artifact.Subject, error) {
	if subject, ok := r.Subject(d); ok {
		return subject, nil
	}
	return artifact.Subject{}, registry.Errorf(registry.CodeNotFound, "%s is not an engine of release %s", d, r.Digest)
}

// attach adds admitted evidence and its event in one environment. If the history already names
// the evidence, it only stores the bytes again, in case they were lost.
func attach(
	ctx context.Context, s *backend.Backend,
	a api.Attachment,
	r artifact.Release,
	subject artifact.Subject,
	claim evidence.Claim,
) (registry.Digest, error) {
	e, err := s.Find(a.Environment)
	if err != nil {
		return "", err
	}
	repository, subjects := registry.Repository(a.Environment, a.Model), []artifact.Subject{subject}
	bundle := evidence.Bundle{PredicateType: claim.Statement.PredicateType, Data: a.Bundle, Figures: a.Figures}
	staged, keeps, err := stage(ctx, s, e, a, claim, bundle, subjects)
	if err != nil {
		return "", err
	}
	err = Record(ctx, s, e, keeps, history.Event{
		Time: claim.RecordedAt, Kind: history.EventAttach, Environment: a.Environment, Model: a.Model, Version: r.Tag(),
		Release: r.Digest, Subject: a.Subject, PredicateType: bundle.PredicateType, Evidence: staged.Digests,
		Signer: claim.Signer, Reason: claim.Reason(),
	}, staged.Records...)
	if err != nil || len(staged.Records) == 0 {
		return staged.Digests[0], err
	}
	// Nothing held the staged bytes until now. Store them again if they were collected, and wait for a
	// removal of them that is in progress. From now on no removal can begin.
	if _, err = s.Content.StageEvidence(ctx, repository, bundle, subjects); err != nil {
		return "", err
	}
	// Record the manifests again if the history named them already, and they were lost since.
	_, err = s.Content.PutEvidence(ctx, repository, bundle, subjects)
	return staged.Digests[0], err
}

// stage stores the bytes of admitted evidence, and returns what the catalog has to keep of it. In a repository on another
// registry it stores all of it. If that registry does not list it, because other clients write the same list, the catalog
// keeps it all the same.
func stage(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	a api.Attachment,
	claim evidence.Claim,
	bundle evidence.Bundle,
	subjects []artifact.Subject,
) (staged storage.StagedEvidence, keeps []evidence.AdverseEvidence, err error) {
	repository := registry.Repository(e.Name, a.Model)
	if claim.Adverse() {
		if err := mayKeep(ctx, s, a); err != nil {
			return staged, nil, err
		}
	}
	if !e.External() {
		if staged, err = s.Content.StageEvidence(ctx, repository, bundle, subjects); err != nil || !claim.Adverse() {
			return staged, nil, err
		}
		bundle.Digest, bundle.Manifest = staged.Digests[0], staged.Manifests[0]
		return staged, keep(ctx, e.Name, a.Model, a.Subject, bundle), nil
	}
	staged.Digests, err = s.Content.PutEvidence(ctx, repository, bundle, subjects)
	unlisted := claim.Adverse() && registry.HasCode(err, registry.CodeConflict) && len(staged.Digests) == len(subjects)
	if err != nil && !unlisted || !claim.Adverse() {
		return staged, nil, err
	}
	stored, err := s.Content.Bundle(ctx, repository, staged.Digests[0])
	if err != nil {
		return staged, nil, err
	}
	return staged, keep(ctx, e.Name, a.Model, a.Subject, stored), nil
}

// Record adds an event for evidence, with the records of its manifests and the rows that the catalog keeps. If the history
// has an equal event, it only writes lost rows again.
func Record(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	keeps []evidence.AdverseEvidence,
	event history.Event,
	adds ...storage.RepositoryManifest,
) error {
	same := history.HistoryQuery{
		Environment: event.Environment,
		Model:       event.Model,
		Kind:        history.EventAttach,
		Subject:     event.Subject,
	}
	for before, err := range s.Catalog.History(ctx, same) {
		if err != nil {
			return err
		}
		if slices.Equal(before.Evidence, event.Evidence) {
			return keepAgain(ctx, s, keeps)
		}
	}
	change := storage.Change{Event: event, Adds: adds, Keeps: keeps}
	if len(adds) == 0 {
		change.Needs = backend.Needs(e, event.Model, event.Evidence...)
	}
	return s.Apply(ctx, change)
}

// spread adds evidence of one environment in every other that has its subject and trusts its
// signer. It runs after the event of the first environment was recorded. A concurrent promotion
// of the subject to another environment so sees that event, or spread sees its result.
func spread(
	ctx context.Context, s *backend.Backend,
	a api.Attachment,
	r artifact.Release,
	subject artifact.Subject,
) (notIn []string, err error) {
	var failed []error
	for _, e := range s.Environments.List {
		if e.Name == a.Environment {
			continue
		}
		elsewhere := a
		elsewhere.Environment = e.Name
		reached, err := attachElsewhere(ctx, s, e, elsewhere, r, subject)
		if !reached && err == nil {
			notIn = append(notIn, e.Name)
		}
		if err != nil {
			failed = append(failed, registry.WithHint(
				registry.Errorf(registry.CodeOf(err),
					"the evidence is attached in %s, but could not be attached in %s: %w", a.Environment, e.Name,
					err),
				"attach it again",
			))
		}
	}
	return notIn, errors.Join(failed...)
}

// attachElsewhere adds evidence in an environment that has its subject. It skips the
// environment if the signer is not trusted there. reached is false if the environment has the subject,
// and the caller may not speak for people there.
func attachElsewhere(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	a api.Attachment,
	r artifact.Release,
	subject artifact.Subject,
) (reached bool, err error) {
	claim, err := admit(ctx, s, a, s.Now())
	if registry.HasCode(err, registry.CodeTrust) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	there, err := has(ctx, s, e, a.Model, subject)
	if err != nil || !there {
		return err == nil, err
	}
	if !MayReach(ctx, e, a.Model, claim) {
		return false, nil
	}
	_, err = attach(ctx, s, a, r, subject, claim)
	return err == nil, err
}

// has reports whether an environment has a release or an engine. It asks another registry only
// about models that have a head there. A model without a head was never promoted there.
func has(
	ctx context.Context, s *backend.Backend,
	e policy.Environment,
	model string,
	subject artifact.Subject,
) (bool, error) {
	if e.External() {
		if head, err := s.Head(ctx, e.Name, model); err != nil || head.Release == "" {
			return false, err
		}
	}
	var err error
	if subject.Index {
		_, err = s.Content.Release(ctx, registry.Repository(e.Name, model), string(subject.Digest))
	} else {
		_, err = s.Content.Engine(ctx, registry.Repository(e.Name, model), subject.Digest)
	}
	if registry.IsUnreadable(err) { // also what is damaged is there, if the environment has its record
		_, there := recordedManifest(ctx, s, e.Name, model, subject.Digest)
		if there || registry.HasCode(err, registry.CodeNotFound) {
			return there, nil
		}
	}
	return err == nil, err
}

// admit checks that a key signed the bundle whose role now allows the statement.
func admit(ctx context.Context, s *backend.Backend, a api.Attachment, now time.Time) (evidence.Claim, error) {
	resource := s.Resource(a.Environment, a.Model)
	claim, err := lookup.VerifyAbout(ctx, s, a.Bundle, "", resource, a.Model)
	if err != nil {
		return evidence.Claim{}, err
	}
	if uri, ok := claim.ApprovedResource(); ok {
		resource = uri
	}
	role, known := claim.Issuer()
	switch {
	case !known:
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust,
			"attach: predicate type %q is unknown", claim.Statement.PredicateType)
	case !claim.MayIssue():
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust,
			"attach: key %s is not trusted as %s for %s (environments.yaml, trust:)", claim.Signer, role, resource)
	case !claim.Statement.About(a.Subject):
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "attach: the statement is not about %s", a.Subject)
	}
	if len(a.Figures) > 0 {
		if err := claim.Statement.CheckFigures(a.Figures); err != nil {
			return evidence.Claim{}, registry.Errorf(registry.CodeOf(err), "attach: %w", err)
		}
	}
	if s.CheckStatement != nil {
		if err := s.CheckStatement(claim.Statement); err != nil {
			return evidence.Claim{}, registry.Errorf(registry.CodeOf(err), "attach: %w", err)
		}
	}
	claim.Subject, claim.RecordedAt = a.Subject, now
	if err := cmp.Or(policy.CheckNew(claim), claim.CheckTexts()); err != nil {
		return evidence.Claim{}, registry.Errorf(registry.CodeOf(err), "attach: %w", err)
	}
	return claim, nil
}

// mayApprove refuses an approval that could never count: about an engine alone, or by a key that
// built the release. Policy ignores such approvals too; here their signer learns it.
func mayApprove(ctx context.Context, s *backend.Backend, a api.Attachment, r artifact.Release, subject artifact.Subject, claim evidence.Claim) error {
	if t := claim.Statement.PredicateType; t != evidence.PredicateApproval && t != evidence.PredicateBreakGlass {
		return nil
	}
	if !subject.Index {
		return registry.Errorf(registry.CodeInvalid, "attach: an approval is about a release, and %s is an engine", subject.Digest)
	}
	if approval, _ := claim.Approval(); approval.Withdrawn {
		return nil
	}
	found, err := lookup.Evidence(ctx, s, registry.Repository(a.Environment, a.Model), s.Resource(a.Environment, a.Model), r)
	if err != nil {
		return err
	}
	if evidence.IsBuilder(r, found.Claims, claim.Signer) {
		return registry.WithHint(
			registry.Errorf(registry.CodeTrust, "attach: key %s signed the build of this release, so it cannot approve it", claim.Signer),
			"another person must approve, with their own key")
	}
	return nil
}
