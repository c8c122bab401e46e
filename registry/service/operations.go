package service

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/service/attachment"
	"mlpromote.dev/mlpromote/registry/service/audit"
	"mlpromote.dev/mlpromote/registry/service/documents"
	"mlpromote.dev/mlpromote/registry/service/heads"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/service/promotion"
	"mlpromote.dev/mlpromote/registry/service/resolution"
	"mlpromote.dev/mlpromote/registry/service/rollback"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Environments returns the chain of environments.
func (s *Service) Environments(context.Context) (policy.Environments, error) {
	return s.backend.Environments, nil
}

// Models is [lookup.Models].
func (s *Service) Models(
	ctx context.Context,
	environment, after string,
	limit int,
) (storage.Page[history.ModelHeads], error) {
	return lookup.Models(ctx, s.backend, environment, after, limit)
}

// Releases is [lookup.Releases].
func (s *Service) Releases(
	ctx context.Context,
	environment, model, after string,
	limit int,
) (storage.Page[storage.TaggedRelease], error) {
	return lookup.Releases(ctx, s.backend, environment, model, after, limit)
}

// Release is [lookup.Release].
func (s *Service) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	return lookup.Release(ctx, s.backend, environment, model, tagOrDigest)
}

// Engine is [lookup.Engine].
func (s *Service) Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error) {
	return lookup.Engine(ctx, s.backend, environment, model, d)
}

// Bundle is [lookup.Bundle].
func (s *Service) Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	return lookup.Bundle(ctx, s.backend, environment, model, d)
}

// Claims is [lookup.Claims].
func (s *Service) Claims(
	ctx context.Context,
	environment string,
	r artifact.Release,
) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	return lookup.Claims(ctx, s.backend, environment, r)
}

// Heads is [lookup.Heads].
func (s *Service) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	return lookup.Heads(ctx, s.backend, environment, model)
}

// History lists events.
func (s *Service) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	return s.backend.History(ctx, q)
}

// Resolve is [resolution.Resolve].
func (s *Service) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return resolution.Resolve(ctx, s.backend, q)
}

// Replay is [resolution.Replay].
func (s *Service) Replay(ctx context.Context, today *Service) ([]resolution.Replayed, error) {
	return resolution.Replay(ctx, s.backend, today.backend)
}

// Publish is [heads.Publish].
func (s *Service) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	return heads.Publish(ctx, s.backend, p)
}

// Promote is [promotion.Promote].
func (s *Service) Promote(ctx context.Context, req api.PromoteRequest) (api.Promotion, error) {
	return promotion.Promote(ctx, s.backend, req)
}

// Rollback is [rollback.Rollback].
func (s *Service) Rollback(ctx context.Context, req api.RollbackRequest) (api.Promotion, error) {
	return rollback.Rollback(ctx, s.backend, req)
}

// SetHold is [heads.SetHold].
func (s *Service) SetHold(ctx context.Context, environment, model, reason string) error {
	return heads.SetHold(ctx, s.backend, environment, model, reason)
}

// ReleaseHold is [heads.ReleaseHold].
func (s *Service) ReleaseHold(ctx context.Context, req api.HoldRelease) error {
	return heads.ReleaseHold(ctx, s.backend, req)
}

// Attach is [attachment.Attach].
func (s *Service) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	return attachment.Attach(ctx, s.backend, a)
}

// Attest is [attachment.Attest].
func (s *Service) Attest(ctx context.Context, req evidence.AttestRequest) (evidence.Attested, error) {
	return attachment.Attest(ctx, s.backend, req)
}

// Restrictions is [documents.Restrictions].
func (s *Service) Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error) {
	return documents.Restrictions(ctx, s.backend, environment)
}

// Restrict is [documents.Restrict].
func (s *Service) Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error) {
	return documents.Restrict(ctx, s.backend, environment, bundle)
}

// TrustBundle is [documents.TrustBundle].
func (s *Service) TrustBundle(ctx context.Context) (trust.SignedTrust, error) {
	return documents.TrustBundle(ctx, s.backend)
}

// PublishTrust is [documents.PublishTrust].
func (s *Service) PublishTrust(ctx context.Context, bundle []byte) (trust.SignedTrust, error) {
	return documents.PublishTrust(ctx, s.backend, bundle)
}

// HistoryFaults is [audit.HistoryFaults].
func (s *Service) HistoryFaults(ctx context.Context) ([]history.HistoryFault, error) {
	return audit.HistoryFaults(ctx, s.backend)
}

// HeadFaults is [audit.HeadFaults].
func (s *Service) HeadFaults(ctx context.Context) ([]history.HistoryFault, error) {
	return audit.HeadFaults(ctx, s.backend)
}

// AcceptHistory is [audit.AcceptHistory].
func (s *Service) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	return audit.AcceptHistory(ctx, s.backend, environment, model, reason)
}

// Relist is [audit.Relist].
func (s *Service) Relist(ctx context.Context) (int, error) {
	return audit.Relist(ctx, s.backend)
}
