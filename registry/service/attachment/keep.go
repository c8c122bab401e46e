package attachment

import (
	"context"
	"slices"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// keep returns the row of adverse evidence in an environment, attached by the caller of ctx.
func keep(ctx context.Context, environment, model string, subject registry.Digest, b evidence.Bundle) []evidence.AdverseEvidence {
	return []evidence.AdverseEvidence{{
		Environment: environment, Model: model, Subject: subject, Bundle: b.Digest, PredicateType: b.PredicateType, Caller: caller(ctx),
		Document: digest.FromBytes(b.Data), Manifest: b.Manifest, Data: b.Data,
	}}
}

// caller is the name of the principal of ctx, or empty for a local user of the data directory.
func caller(ctx context.Context) string {
	p, _ := storage.PrincipalOf(ctx)
	return p.Name
}

// KeepFrom returns the rows of those claims that are adverse, with their bytes from a repository.
func KeepFrom(ctx context.Context, s *backend.Backend, repository, environment, model string, claims ...evidence.Claim) ([]evidence.AdverseEvidence, error) {
	var rows []evidence.AdverseEvidence
	for _, c := range claims {
		if !c.Adverse() {
			continue
		}
		b, err := s.Content.Bundle(ctx, repository, c.Bundle)
		if err != nil {
			return nil, err
		}
		rows = append(rows, keep(ctx, environment, model, c.Subject, b)...)
	}
	return rows, nil
}

// keepAgain writes rows whose event the history has, in case they were lost.
func keepAgain(ctx context.Context, s *backend.Backend, rows []evidence.AdverseEvidence) error {
	for _, row := range rows {
		if err := s.Catalog.KeepAdverse(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// mayKeep refuses more adverse evidence about one subject than a caller may attach. What is kept may be attached again.
func mayKeep(ctx context.Context, s *backend.Backend, a api.Attachment) error {
	row := evidence.AdverseEvidence{Environment: a.Environment, Model: a.Model, Subject: a.Subject, Caller: caller(ctx)}
	if s.MaxReferrers <= 0 || row.Caller == "" {
		return nil
	}
	n, err := s.Catalog.CountAdverse(ctx, row)
	if err != nil || n < s.MaxReferrers {
		return err
	}
	rows, err := s.Catalog.Adverse(ctx, a.Model, a.Subject)
	if err != nil || slices.ContainsFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Document == digest.FromBytes(a.Bundle) }) {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeForbidden, "attach: %s attached %d quarantines, lifts and failing reports about %s in %s, the most for one caller",
			row.Caller, n, a.Subject, a.Environment),
		"another caller can attach it, or an administrator raises max-referrers")
}
