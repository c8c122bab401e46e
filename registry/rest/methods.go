package rest

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// The methods of [Interface] are calls of the rows.

func (w *wrapped) Environments(ctx context.Context) (policy.Environments, error) {
	return ask(ctx, w, Environments, None{})
}

func (w *wrapped) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	return ask(ctx, w, Heads, HeadsQuery{Environment: environment, Model: model})
}

func (w *wrapped) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return ask(ctx, w, Resolve, q)
}

func (w *wrapped) Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error) {
	return ask(ctx, w, Restrictions, EnvironmentQuery{environment})
}

func (w *wrapped) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	return ask(ctx, w, History, q)
}

func (w *wrapped) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	return ask(ctx, w, Publish, p)
}

func (w *wrapped) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	attached, err := ask(ctx, w, Attach, a)
	return attached.Bundle, err
}

func (w *wrapped) Promote(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	return ask(ctx, w, Promote, r)
}

func (w *wrapped) Attest(ctx context.Context, r evidence.AttestRequest) (evidence.Attested, error) {
	return ask(ctx, w, Attest, r)
}

func (w *wrapped) Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error) {
	return ask(ctx, w, Restrict, Restriction{environment, bundle})
}

func (w *wrapped) TrustBundle(ctx context.Context) (trust.SignedTrust, error) {
	return ask(ctx, w, NewestTrust, None{})
}

func (w *wrapped) PublishTrust(ctx context.Context, bundle []byte) (trust.SignedTrust, error) {
	return ask(ctx, w, PublishTrust, TrustBundle{bundle})
}

func (w *wrapped) Rollback(ctx context.Context, r api.RollbackRequest) (api.Promotion, error) {
	return ask(ctx, w, Rollback, r)
}

func (w *wrapped) SetHold(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, SetHold, Hold{environment, model, reason})
	return err
}

func (w *wrapped) ReleaseHold(ctx context.Context, r api.HoldRelease) error {
	_, err := ask(ctx, w, ReleaseHold, r)
	return err
}

func (w *wrapped) HistoryFaults(ctx context.Context) ([]history.HistoryFault, error) {
	return ask(ctx, w, HistoryFaults, None{})
}

func (w *wrapped) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	_, err := ask(ctx, w, AcceptHistory, HistoryAcceptance{environment, model, reason})
	return err
}

func (w *wrapped) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	return ask(ctx, w, Release, ReleaseQuery{environment, model, tagOrDigest})
}

func (w *wrapped) Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	found, err := ask(ctx, w, Evidence, ClaimsQuery{environment, r})
	return found.Claims, evidence.IgnoredEvidence{Ignored: found.Ignored, IgnoredCount: found.IgnoredCount}, err
}

func (w *wrapped) Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error) {
	return ask(ctx, w, Engine, DigestQuery{environment, model, d})
}

func (w *wrapped) Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	return ask(ctx, w, Bundle, DigestQuery{environment, model, d})
}

func (w *wrapped) Models(ctx context.Context, environment, after string, limit int) (storage.Page[history.ModelHeads], error) {
	return ask(ctx, w, Models, ModelsQuery{environment, Paging{storage.PageLimit(limit), after}})
}

func (w *wrapped) Releases(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.TaggedRelease], error) {
	return ask(ctx, w, Releases, ReleasesQuery{environment, model, Paging{storage.PageLimit(limit), after}})
}
