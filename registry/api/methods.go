package api

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// The methods of [registry.Interface] are calls of the rows.

func (w *wrapped) Environments(ctx context.Context) (registry.Environments, error) {
	return ask(ctx, w, Environments, None{})
}

func (w *wrapped) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	return ask(ctx, w, Heads, HeadsQuery{Environment: environment, Model: model})
}

func (w *wrapped) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	return ask(ctx, w, Resolve, q)
}

func (w *wrapped) Restrictions(ctx context.Context, environment string) (registry.SignedRestrictions, error) {
	return ask(ctx, w, Restrictions, EnvironmentQuery{environment})
}

func (w *wrapped) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	return ask(ctx, w, History, q)
}

func (w *wrapped) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	return ask(ctx, w, Publish, p)
}

func (w *wrapped) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	attached, err := ask(ctx, w, Attach, a)
	return attached.Bundle, err
}

func (w *wrapped) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	return ask(ctx, w, Promote, r)
}

func (w *wrapped) Attest(ctx context.Context, r registry.AttestRequest) (registry.Attested, error) {
	return ask(ctx, w, Attest, r)
}

func (w *wrapped) Restrict(ctx context.Context, environment string, bundle []byte) (registry.SignedRestrictions, error) {
	return ask(ctx, w, Restrict, Restriction{environment, bundle})
}

func (w *wrapped) TrustBundle(ctx context.Context) (registry.SignedTrust, error) {
	return ask(ctx, w, NewestTrust, None{})
}

func (w *wrapped) PublishTrust(ctx context.Context, bundle []byte) (registry.SignedTrust, error) {
	return ask(ctx, w, PublishTrust, TrustBundle{bundle})
}

func (w *wrapped) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	return ask(ctx, w, Rollback, r)
}

func (w *wrapped) SetHold(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, SetHold, Hold{environment, model, reason})
	return err
}

func (w *wrapped) ReleaseHold(ctx context.Context, r registry.HoldRelease) error {
	_, err := ask(ctx, w, ReleaseHold, r)
	return err
}

func (w *wrapped) HistoryFaults(ctx context.Context) ([]registry.HistoryFault, error) {
	return ask(ctx, w, HistoryFaults, None{})
}

func (w *wrapped) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, AcceptHistory, HistoryAcceptance{environment, model, reason})
	return err
}

func (w *wrapped) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	return ask(ctx, w, Release, ReleaseQuery{environment, model, tagOrDigest})
}

func (w *wrapped) Claims(ctx context.Context, environment string, r registry.Release) ([]registry.Claim, registry.IgnoredEvidence, error) {
	found, err := ask(ctx, w, Evidence, ClaimsQuery{environment, r})
	return found.Claims, registry.IgnoredEvidence{Ignored: found.Ignored, IgnoredCount: found.IgnoredCount}, err
}

func (w *wrapped) Engine(ctx context.Context, environment, model string, d registry.Digest) (registry.Engine, error) {
	return ask(ctx, w, Engine, DigestQuery{environment, model, d})
}

func (w *wrapped) Bundle(ctx context.Context, environment, model string, d registry.Digest) (registry.Bundle, error) {
	return ask(ctx, w, Bundle, DigestQuery{environment, model, d})
}

func (w *wrapped) Models(ctx context.Context, environment, after string, limit int) (registry.Page[registry.ModelHeads], error) {
	return ask(ctx, w, Models, ModelsQuery{environment, Paging{registry.PageLimit(limit), after}})
}

func (w *wrapped) Releases(ctx context.Context, environment, model, after string, limit int) (registry.Page[registry.TaggedRelease], error) {
	return ask(ctx, w, Releases, ReleasesQuery{environment, model, Paging{registry.PageLimit(limit), after}})
}
