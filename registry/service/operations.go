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
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

func (s *Service) AcceptHistory(ctx context.Context, environment, model, reason string) error {
	return AcceptHistory(ctx, s.backend, environment, model, reason)
}

func (s *Service) Attach(ctx context.Context, a api.Attachment) (registry.Digest, error) {
	return Attach(ctx, s.backend, a)
}

func (s *Service) Attest(ctx context.Context, req evidence.AttestRequest) (evidence.Attested, error) {
	return Attest(ctx, s.backend, req)
}

func (s *Service) Bundle(ctx context.Context, environment, model string, d registry.Digest) (evidence.Bundle, error) {
	return Bundle(ctx, s.backend, environment, model, d)
}

func (s *Service) Claims(
	ctx context.Context,
	environment string,
	r artifact.Release,
) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	return Claims(ctx, s.backend, environment, r)
}

func (s *Service) Engine(ctx context.Context, environment, model string, d registry.Digest) (artifact.Engine, error) {
	return Engine(ctx, s.backend, environment, model, d)
}

func (s *Service) Environments(context.Context) (policy.Environments, error) {
	return s.backend.Environments, nil
}

func (s *Service) HeadFaults(ctx context.Context) ([]history.HistoryFault, error) {
	return HeadFaults(ctx, s.backend)
}

func (s *Service) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	return Heads(ctx, s.backend, environment, model)
}

func (s *Service) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	return s.backend.History(ctx, q)
}

func (s *Service) HistoryFaults(ctx context.Context) ([]history.HistoryFault, error) {
	return HistoryFaults(ctx, s.backend)
}

func (s *Service) Models(
	ctx context.Context,
	environment, after string,
	limit int,
) (storage.Page[history.ModelHeads], error) {
	return Models(ctx, s.backend, environment, after, limit)
}

func (s *Service) Promote(ctx context.Context, req api.PromoteRequest) (api.Promotion, error) {
	return Promote(ctx, s.backend, req)
}

func (s *Service) Publish(ctx context.Context, p api.Publication) (history.Head, error) {
	return Publish(ctx, s.backend, p)
}

func (s *Service) PublishTrust(ctx context.Context, bundle []byte) (trust.SignedTrust, error) {
	return PublishTrust(ctx, s.backend, bundle)
}

func (s *Service) Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error) {
	return Release(ctx, s.backend, environment, model, tagOrDigest)
}

func (s *Service) ReleaseHold(ctx context.Context, req api.HoldRelease) error {
	return ReleaseHold(ctx, s.backend, req)
}

func (s *Service) Releases(
	ctx context.Context,
	environment, model, after string,
	limit int,
) (storage.Page[storage.TaggedRelease], error) {
	return Releases(ctx, s.backend, environment, model, after, limit)
}

func (s *Service) Relist(ctx context.Context) (int, error) {
	return Relist(ctx, s.backend)
}

func (s *Service) Replay(ctx context.Context, today *Service) ([]Replayed, error) {
	return Replay(ctx, s.backend, today.backend)
}

func (s *Service) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	return Resolve(ctx, s.backend, q)
}

func (s *Service) Restrict(ctx context.Context, environment string, bundle []byte) (restriction.SignedRestrictions, error) {
	return Restrict(ctx, s.backend, environment, bundle)
}

func (s *Service) Restrictions(ctx context.Context, environment string) (restriction.SignedRestrictions, error) {
	return Restrictions(ctx, s.backend, environment)
}

func (s *Service) Rollback(ctx context.Context, req api.RollbackRequest) (api.Promotion, error) {
	return Rollback(ctx, s.backend, req)
}

func (s *Service) SetHold(ctx context.Context, environment, model, reason string) error {
	return SetHold(ctx, s.backend, environment, model, reason)
}

func (s *Service) TrustBundle(ctx context.Context) (trust.SignedTrust, error) {
	return TrustBundle(ctx, s.backend)
}
