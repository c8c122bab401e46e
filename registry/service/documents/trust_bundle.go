package documents

import (
	"context"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// TrustBundle returns the trust bundle that the newest event of its kind names.
func TrustBundle(ctx context.Context, s *backend.Backend) (trust.SignedTrust, error) {
	signed, err := newestTrust(ctx, s)
	if err == nil && signed.Digest == "" {
		err = registry.WithHint(registry.Errorf(registry.CodeNotFound, "no trust bundle was published"),
			"mlpromote trust publish makes, signs and publishes one")
	}
	return signed, err
}

// newestTrust is TrustBundle, with the zero SignedTrust if there is none. The signature was verified
// when the bundle was recorded; the event names its digest.
func newestTrust(ctx context.Context, s *backend.Backend) (trust.SignedTrust, error) {
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Kind: history.EventTrust, Descending: true, Limit: 1}) {
		if err != nil {
			return trust.SignedTrust{}, err
		}
		return recordedTrust(ctx, s, e)
	}
	return trust.SignedTrust{}, nil
}

// recordedTrust reads the bundle that an event names.
func recordedTrust(ctx context.Context, s *backend.Backend, e history.Event) (trust.SignedTrust, error) {
	fail := func(err error) (trust.SignedTrust, error) {
		return trust.SignedTrust{}, registry.WithHint(registry.Errorf(registry.CodeOf(err), "trust bundle %.20q of event %d: %w", e.Version, e.Seq, err),
			"restore it from a backup, or publish it again")
	}
	if s.TrustBundles == nil || len(e.Evidence) != 1 {
		return fail(registry.Errorf(registry.CodeTrust, "this process cannot read it, or the event names %d", len(e.Evidence)))
	}
	stored, err := s.TrustBundles.Get(ctx, string(e.Evidence[0]))
	if registry.HasCode(err, registry.CodeNotFound) {
		return fail(registry.Errorf(registry.CodeTrust, "the history names it, but it is missing"))
	}
	if err != nil {
		return fail(err)
	}
	if found := digest.FromBytes(stored.Bundle); found != e.Evidence[0] {
		return fail(registry.Errorf(registry.CodeDigest, "its bytes were changed: they have the digest %s", found))
	}
	trustEntries, err := trust.PeekTrustBundle(stored.Bundle)
	if err != nil {
		return fail(err)
	}
	return trust.SignedTrust{Digest: e.Evidence[0], Trust: trustEntries, Signer: e.Signer, RecordedAt: e.Time, Bundle: stored.Bundle}, nil
}

// PublishTrust makes a signed bundle the newest, if it follows the newest one and agrees with this registry.
// If it is the newest already, it is stored again, in case it was lost.
func PublishTrust(ctx context.Context, s *backend.Backend, bundle []byte) (trust.SignedTrust, error) {
	if s.TrustBundles == nil || s.ReadKey == nil || s.KeptCheckpoint == nil {
		return trust.SignedTrust{}, registry.Errorf(registry.CodeUnavailable, "this process cannot publish trust bundles")
	}
	if len(bundle) > trust.MaxTrustBundle {
		return trust.SignedTrust{}, registry.Errorf(registry.CodeInvalid,
			"trust bundle: %d bytes, want at most %d", len(bundle), trust.MaxTrustBundle)
	}
	claim, err := s.Verify(ctx, bundle, trust.RegistryURI(s.Environments.Registry))
	if err != nil {
		return trust.SignedTrust{}, err
	}
	if s.CheckStatement != nil {
		if err := s.CheckStatement(claim.Statement); err != nil {
			return trust.SignedTrust{}, err
		}
	}
	trustEntries, err := trust.BundleOf(claim, s.Environments.Registry)
	if err != nil {
		return trust.SignedTrust{}, err
	}
	next := trust.SignedTrust{Digest: digest.FromBytes(bundle), Trust: trustEntries, Signer: claim.Signer, Bundle: bundle}
	if err := backend.Decide(func() error { return publishTrust(ctx, s, next) }); err != nil {
		return trust.SignedTrust{}, err
	}
	return TrustBundle(ctx, s)
}

// publishTrust records a bundle as the next one, unless it is the newest.
func publishTrust(ctx context.Context, s *backend.Backend, next trust.SignedTrust) error {
	state, err := s.Catalog.ModelState(ctx, "", "")
	if err != nil {
		return err
	}
	basis := history.NewDecisionBasis(state, s.Environments, artifact.Release{})
	stored := storage.TrustBundleDocument{Bundle: next.Bundle}
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Kind: history.EventTrust, Descending: true, Limit: 1}) {
		if err != nil {
			return err
		}
		if len(e.Evidence) == 1 && e.Evidence[0] == next.Digest {
			return s.TrustBundles.Put(ctx, string(next.Digest), stored)
		}
	}
	before, err := newestTrust(ctx, s)
	if err != nil {
		return err
	}
	if err := next.Accepted().CheckNext(before.Accepted()); err != nil {
		return err
	}
	now := s.Now()
	if err := next.Trust.CheckCurrent(now); err != nil {
		return err
	}
	if err := saysTheSame(ctx, s, next.Trust); err != nil {
		return err
	}
	why, err := next.Trust.Differs(before.Trust)
	if err != nil {
		return err
	}
	if err := s.TrustBundles.Put(ctx, string(next.Digest), stored); err != nil {
		return err
	}
	reason := "renewed"
	if len(why) > 0 {
		reason = "changed: " + strings.Join(why, ", ")
	}
	return s.Apply(ctx, storage.Change{
		Event: history.Event{
			Time: now, Kind: history.EventTrust, Version: strconv.FormatInt(next.Trust.Version, 10),
			PredicateType: trust.PredicateTrustBundle, Evidence: []registry.Digest{next.Digest}, Signer: next.Signer, Reason: reason,
		},
		DecisionBasis: &basis,
	})
}

// saysTheSame checks that a bundle says what environments.yaml, the restriction lists in force and the
// checkpoints of this registry say. Errors: CodeTrust.
func saysTheSame(ctx context.Context, s *backend.Backend, b trust.TrustBundle) error {
	ours, err := policy.DraftTrustBundle(s.Environments, s.ReadKey)
	if err != nil {
		return err
	}
	var lists []restriction.SignedRestrictions
	for _, e := range s.Environments.List {
		signed, _, err := readRestrictions(ctx, s, e.Name)
		if err != nil {
			return err
		}
		lists = append(lists, signed)
	}
	differs, err := b.Differs(ours.WithRestrictions(lists))
	if err != nil {
		return err
	}
	if len(differs) > 0 {
		return registry.WithHint(registry.Errorf(registry.CodeTrust,
			"trust bundle %d: it says something else than this registry about: %s", b.Version, strings.Join(differs, ", ")),
			"publish from a folder with the environments.yaml and the keys of this registry")
	}
	if b.Checkpoint.Size == 0 {
		return nil
	}
	kept, err := s.KeptCheckpoint(ctx, b.Checkpoint.Size)
	if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	if err != nil || kept != b.Checkpoint {
		return registry.Errorf(registry.CodeTrust,
			"trust bundle %d: its checkpoint of %d events is not one that this registry made", b.Version, b.Checkpoint.Size)
	}
	return nil
}
