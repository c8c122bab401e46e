// Package documents reads restriction lists and trust bundles, puts the next ones in force, and compares the stored ones with
// the history.
package documents

import (
	"context"
	"strconv"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Restrictions returns the restriction list in force in an environment.
func Restrictions(ctx context.Context, s *backend.Backend, environment string) (restriction.SignedRestrictions, error) {
	if _, err := s.Find(environment); err != nil {
		return restriction.SignedRestrictions{}, err
	}
	signed, _, err := readRestrictions(ctx, s, environment)
	return signed, err
}

// RestrictionsIn returns the restrictions in force in an environment. Every decision asks it. Errors: as
// readRestrictions, so that nothing is allowed while they are unknown.
func RestrictionsIn(ctx context.Context, s *backend.Backend, environment string) (restriction.Restrictions, error) {
	_, in, err := readRestrictions(ctx, s, environment)
	return in, err
}

// readRestrictions reads the list that the newest event of its kind names, and lists before it as far
// as they count too. Errors: CodeTrust for a list that is missing or does not count; CodeDigest for
// one that was changed.
func readRestrictions(ctx context.Context, s *backend.Backend, environment string) (restriction.SignedRestrictions, restriction.Restrictions, error) {
	signed := restriction.SignedRestrictions{Environment: environment}
	event, err := lastRestriction(ctx, s, environment)
	if err != nil {
		return signed, restriction.Restrictions{}, err
	}
	if event.Kind == "" {
		return signed, restriction.NoRestrictions(), nil
	}
	if len(event.Evidence) != 1 {
		return signed, restriction.Restrictions{}, registry.Errorf(registry.CodeTrust,
			"event %d of %s names %d restriction lists, want one", event.Seq, environment, len(event.Evidence))
	}
	resource := s.Environments.EnvironmentURI(environment)
	var claims []evidence.Claim
	for d := event.Evidence[0]; d != ""; {
		claim, list, bundle, err := restrictionList(ctx, s, environment, d)
		if err != nil {
			return signed, restriction.Restrictions{}, err
		}
		if len(claims) == 0 {
			signed.Digest, signed.List, signed.Bundle, signed.Signer, signed.RecordedAt = d, list, bundle, claim.Signer, event.Time
		}
		claims = append(claims, claim)
		if d = list.Previous; !claim.OnlyRestricts() {
			break
		}
	}
	in, err := restriction.RestrictionsInForce(resource, claims...)
	signed.InForce = in.Entries()
	return signed, in, err
}

// lastRestriction returns the newest event of an environment that names a restriction list, or the
// zero Event.
func lastRestriction(ctx context.Context, s *backend.Backend, environment string) (history.Event, error) {
	hash, err := s.Catalog.LastEvent(ctx, environment, "")
	if err != nil || hash == "" {
		return history.Event{}, err
	}
	for _, q := range []history.HistoryQuery{
		{Hash: hash, Environment: environment, Kind: history.EventRestrict},
		{Environment: environment, Kind: history.EventRestrict, Descending: true, Limit: 1},
	} {
		for e, err := range s.Catalog.History(ctx, q) {
			return e, err
		}
	}
	return history.Event{}, nil
}

// restrictionList reads and verifies one list of an environment.
func restrictionList(ctx context.Context, s *backend.Backend, environment string,
	d registry.Digest) (evidence.Claim, evidence.RestrictionList, []byte, error) {
	fail := func(err error) (evidence.Claim, evidence.RestrictionList, []byte, error) {
		return evidence.Claim{}, evidence.RestrictionList{}, nil, registry.WithHint(
			registry.Errorf(registry.CodeOf(err), "restriction list %s of %s: %w", d, environment, err),
			"nothing is promoted or resolved in %s without it: restore it from a backup, or with mlpromote quarantine restore FILE; "+
				"keep the keys of approvers in trust, also revoked ones", environment)
	}
	if s.RestrictionBundles == nil {
		return fail(registry.Errorf(registry.CodeTrust, "this process cannot read restriction lists"))
	}
	stored, err := s.RestrictionBundles.Get(ctx, string(d))
	if registry.HasCode(err, registry.CodeNotFound) {
		return fail(registry.Errorf(registry.CodeTrust, "the history names it, but it is missing"))
	}
	if err != nil {
		return fail(err)
	}
	if found := digest.FromBytes(stored.Bundle); found != d {
		return fail(registry.Errorf(registry.CodeDigest, "its bytes were changed: they have the digest %s", found))
	}
	resource := s.Environments.EnvironmentURI(environment)
	claim, err := s.Verify(ctx, stored.Bundle, resource)
	if err != nil {
		return fail(err)
	}
	records, err := s.Records.Recorded(ctx, "", []registry.Digest{d})
	if err != nil {
		return fail(err)
	}
	claim.Bundle, claim.Recorded, claim.RecordedAt = d, records[d].Seq, records[d].Time
	list, err := claim.RestrictionList(resource)
	if err != nil {
		return fail(err)
	}
	return claim, list, stored.Bundle, nil
}

// Restrict puts a signed restriction list in force in its environment, if it follows the one in
// force. A list that is in force already is stored again, in case it was lost.
func Restrict(ctx context.Context, s *backend.Backend, environment string, bundle []byte) (restriction.SignedRestrictions, error) {
	if _, err := s.Find(environment); err != nil {
		return restriction.SignedRestrictions{}, err
	}
	claim, list, err := admitRestrictions(ctx, s, environment, bundle)
	if err != nil {
		return restriction.SignedRestrictions{}, err
	}
	err = backend.Decide(func() error { return restrict(ctx, s, environment, bundle, claim, list) })
	if err != nil {
		return restriction.SignedRestrictions{}, err
	}
	return Restrictions(ctx, s, environment)
}

// admitRestrictions checks that a trusted approver of the whole environment signed the list just now.
func admitRestrictions(ctx context.Context, s *backend.Backend, environment string, bundle []byte) (evidence.Claim, evidence.RestrictionList, error) {
	refuse := func(err error) (evidence.Claim, evidence.RestrictionList, error) {
		return evidence.Claim{}, evidence.RestrictionList{}, err
	}
	if s.RestrictionBundles == nil {
		return refuse(registry.Errorf(registry.CodeUnavailable, "this process cannot store restriction lists"))
	}
	if len(bundle) > evidence.MaxRestrictionBundle {
		return refuse(registry.Errorf(registry.CodeInvalid, "restriction list: %d bytes, want at most %d", len(bundle), evidence.MaxRestrictionBundle))
	}
	resource := s.Environments.EnvironmentURI(environment)
	claim, err := s.Verify(ctx, bundle, resource)
	if err != nil {
		return refuse(err)
	}
	if s.CheckStatement != nil {
		if err := s.CheckStatement(claim.Statement); err != nil {
			return refuse(err)
		}
	}
	claim.Bundle = digest.FromBytes(bundle)
	list, err := claim.RestrictionList(resource)
	return claim, list, err
}

// restrict records a list as the next one, unless it is the one in force.
func restrict(ctx context.Context, s *backend.Backend, environment string, bundle []byte, claim evidence.Claim, list evidence.RestrictionList) error {
	state, err := s.Catalog.ModelState(ctx, environment, "")
	if err != nil {
		return err
	}
	basis := history.NewDecisionBasis(state, s.Environments, artifact.Release{})
	stored := storage.RestrictionBundle{Bundle: bundle}
	last, err := lastRestriction(ctx, s, environment)
	if err != nil {
		return err
	}
	if len(last.Evidence) == 1 && last.Evidence[0] == claim.Bundle {
		return s.RestrictionBundles.Put(ctx, string(claim.Bundle), stored)
	}
	current, in, err := readRestrictions(ctx, s, environment)
	if err != nil {
		return err
	}
	if err := restriction.CheckNext(list, current.List, current.Digest, in, claim.Signer); err != nil {
		return err
	}
	if claim.RecordedAt = s.Now(); registry.ClaimsFuture(list.IssuedOn, claim.RecordedAt) {
		return registry.Errorf(registry.CodeTrust,
			"restriction list: it says that it was signed on %s, and now it is %s: set the clock of the approver, or of this machine",
			list.IssuedOn.UTC(), claim.RecordedAt.UTC())
	}
	if err := policy.CheckNew(claim); err != nil {
		return err
	}
	if err := s.RestrictionBundles.Put(ctx, string(claim.Bundle), stored); err != nil {
		return err
	}
	return s.Apply(ctx, storage.Change{
		Event: history.Event{
			Time: claim.RecordedAt, Kind: history.EventRestrict, Environment: environment, Version: strconv.FormatInt(list.Counter, 10),
			PredicateType: evidence.PredicateRestrictions, Evidence: []registry.Digest{claim.Bundle}, Signer: claim.Signer, Reason: list.Reason,
		},
		DecisionBasis: &basis,
	})
}
