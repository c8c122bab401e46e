package api

import (
	"context"
	"net/http"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	remove = http.MethodDelete

	read       = registry.PermissionRead
	administer = registry.PermissionAdminister
)

// Largest request bodies in bytes.
const (
	SmallBody    = 64 << 10     // names, digests, a comment: of a row without a limit
	documentBody = 512 << 10    // what a machine or a runtime is, with all of its labels
	signedBody   = 6 << 20      // a signed document of at most 4 MiB: base64 adds a third
	evidenceBody = wire.MaxBody // a bundle with its per-case figures
)

// StreamType is the media type of server-sent events.
const StreamType = "text/event-stream"

// Table lists every operation. The first route that matches a path is its label in metrics.
func Table() []Any {
	return slices.Concat([]Any{
		OpenAPI, Environments, Heads, Models, Targets, History, HistoryFaults, Restrictions, Restrict, NewestTrust, PublishTrust,
		NodeReports, ReportNode, Checkpoint, Checkpoints, Proof, Events, PromotionEvent,
		ResolveFacts, Resolve, Releases, Release, Engines, Engine, Evidence, Quarantines, Comparison, Bundle,
		Attach, Attest, Publish, Promotions, PromotionCheck, Promote, Rollback, SetHold, ReleaseHold, AcceptHistory,
	},
		NodeTypes.rows(), Runtimes.rows(),
		[]Any{
			ListWebhooks, AddWebhook, GetWebhook, PutWebhook, DeleteWebhook, ListTokens, AddToken, GetToken, RevokeToken,
			ConfigurationState, AdoptConfiguration, Administration,
		})
}

// The operations that change the head of a model, or what is decided about it.
var (
	Publish = &Operation[registry.Publication, registry.Head]{
		Row: Row{
			Name: "publish", Method: post, Path: at(wire.OpPublications), Summary: "Move the first environment's head to a release that was built there", Tag: "promotions",
			Kind: Changes, Permission: registry.PermissionPush, Traced: true,
			Examples: []Example{with("a release", registry.Publication{Release: exampleRelease}, "model", exampleModel)},
		},
		At: func(q registry.Publication) (string, string) { return "", q.Model },
		Needs: func(ctx context.Context, r registry.Interface, q registry.Publication) (Place, error) {
			environments, err := r.Environments(ctx)
			if err != nil {
				return Place{}, err
			}
			return Place{registry.PermissionPush, environments.First().Name, q.Model}, nil
		},
		Do: func(ctx context.Context, r registry.Interface, q registry.Publication) (registry.Head, error) {
			return r.Publish(ctx, q)
		},
		Check: checkPublished,
	}
	Attach = &Operation[registry.Attachment, Attached]{
		Row: Row{
			Name: "attach", Method: post, Path: at(wire.OpEvidence), Summary: "Attach signed evidence: reports, approvals, quarantines and their lifts", Tag: "evidence",
			Kind: Changes, Permission: registry.PermissionVerify, AnyOf: allButRead(), Traced: true, Limit: evidenceBody, Status: http.StatusCreated,
			Examples: []Example{with("a report", object{"environment": "staging", "release": exampleRelease, "subject": exampleEngine, "bundle": exampleBytes},
				"model", exampleModel, wire.IdempotencyKey, "c0ffee-1")},
		},
		At: func(q registry.Attachment) (string, string) { return q.Environment, q.Model },
		Needs: func(_ context.Context, _ registry.Interface, q registry.Attachment) (Place, error) {
			permission, err := attachPermission(q.Bundle)
			return Place{permission, q.Environment, q.Model}, err
		},
		Do: func(ctx context.Context, r registry.Interface, q registry.Attachment) (Attached, error) {
			d, err := r.Attach(ctx, q)
			return Attached{d}, err
		},
		Check: func(_ registry.Attachment, a Attached) (string, error) { return "bundle", a.Bundle.Validate() },
	}
	// Attest needs the permission for the environment that the person speaks about. As with Promote, a caller who may
	// decide about the destination may use the source.
	Attest = &Operation[registry.AttestRequest, registry.Attested]{
		Row: Row{
			Name: "attest", Method: post, Path: at(wire.OpAttestations), Summary: "Have the service sign an approval, its withdrawal or a quarantine in the caller's name", Tag: "evidence",
			Kind: Changes, Permission: registry.PermissionAttest, Traced: true, Status: http.StatusCreated,
			Examples: []Example{
				with("an approval", registry.AttestRequest{Kind: registry.AttestApproval, Environment: "prod", Release: exampleRelease, Comment: "load test passed"}, "model", exampleModel, wire.IdempotencyKey, "c0ffee-8"),
				with("a quarantine", registry.AttestRequest{Kind: registry.AttestQuarantine, Environment: "prod", Release: exampleRelease, Subject: exampleEngine, Comment: "wrong at night"}, "model", exampleModel),
			},
		},
		At: func(q registry.AttestRequest) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r registry.Interface, q registry.AttestRequest) (registry.Attested, error) {
			return r.Attest(ctx, q)
		},
		Check: checkAttested,
	}
	// Promote needs the permission for the destination only. A caller who may decide about the destination may use the source.
	// A dry run changes nothing, but it must not return a decision made under rules other than the agreed ones.
	Promote = &Operation[registry.PromoteRequest, registry.Promotion]{
		Row: Row{
			Name: "promote", Method: post, Path: at(wire.OpPromotions), Summary: "Promote a release to the next environment", Tag: "promotions",
			Kind: Changes, Permission: registry.PermissionPromote, Traced: true,
			Examples: []Example{
				with("ask", registry.PromoteRequest{DryRun: true}, "model", exampleModel),
				with("a version", registry.PromoteRequest{Ref: "1.0.0", From: "staging", To: "prod"}, "model", exampleModel, wire.IdempotencyKey, "c0ffee-2"),
			},
		},
		At:   func(q registry.PromoteRequest) (string, string) { return q.To, q.Model },
		Asks: func(q registry.PromoteRequest) bool { return q.DryRun },
		Needs: func(ctx context.Context, r registry.Interface, q registry.PromoteRequest) (Place, error) {
			environments, err := r.Environments(ctx)
			if err != nil {
				return Place{}, err
			}
			_, to, err := environments.Edge(q.From, q.To)
			return Place{registry.PermissionPromote, to.Name, q.Model}, err
		},
		Do: func(ctx context.Context, r registry.Interface, q registry.PromoteRequest) (registry.Promotion, error) {
			return r.Promote(ctx, q)
		},
		Check: checkPromotion[registry.PromoteRequest],
	}
	Rollback = &Operation[registry.RollbackRequest, registry.Promotion]{
		Row: Row{
			Name: "rollback", Method: post, Path: at(wire.OpRollbacks), Summary: "Move an environment back to an earlier head", Tag: "promotions",
			Kind: Changes, Permission: registry.PermissionPromote, Traced: true,
			Examples: []Example{with("to a version", registry.RollbackRequest{Environment: "prod", Version: "1.0.0", Reason: "answers are wrong at night"}, "model", exampleModel)},
		},
		At: func(q registry.RollbackRequest) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r registry.Interface, q registry.RollbackRequest) (registry.Promotion, error) {
			return r.Rollback(ctx, q)
		},
		Check: checkPromotion[registry.RollbackRequest],
	}
	SetHold = &Operation[Hold, None]{
		Row: Row{
			Name: "setHold", Method: post, Path: at(wire.OpHolds), Summary: "Stop promotions from moving a head", Tag: "promotions",
			Kind: Changes, Permission: registry.PermissionPromote,
			Examples: []Example{with("wait", Hold{Environment: "prod", Reason: "the answers are being looked at"}, "model", exampleModel)},
		},
		At: func(q Hold) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r registry.Interface, q Hold) (None, error) {
			return None{}, r.SetHold(ctx, q.Environment, q.Model, q.Reason)
		},
	}
	ReleaseHold = &Operation[registry.HoldRelease, None]{
		Row: Row{
			Name: "releaseHold", Method: post, Path: at(wire.OpHoldReleases), Summary: "Let promotions move a held head again", Tag: "promotions",
			Kind: Changes, Permission: registry.PermissionPromote,
			Examples: []Example{with("go on", registry.HoldRelease{Environment: "prod", Reason: "1.1.0 mends it"}, "model", exampleModel)},
		},
		At: func(q registry.HoldRelease) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r registry.Interface, q registry.HoldRelease) (None, error) {
			return None{}, r.ReleaseHold(ctx, q)
		},
	}
	AcceptHistory = &Operation[HistoryAcceptance, None]{
		Row: Row{
			Name: "acceptHistory", Method: post, Path: at(wire.OpAcceptances), Summary: "Accept what the history does not explain, so that promotions continue", Tag: "history",
			Kind: Changes, Permission: administer,
			Examples: []Example{with("after a restore", HistoryAcceptance{Environment: "prod", Reason: "restored from Tuesday's backup"}, "model", exampleModel)},
		},
		At: func(q HistoryAcceptance) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r registry.Interface, q HistoryAcceptance) (None, error) {
			return None{}, r.AcceptHistory(ctx, q.Environment, q.Model, q.Reason)
		},
	}
	// Restrict needs the permission for every model of the environment.
	Restrict = &Operation[Restriction, registry.SignedRestrictions]{
		Row: Row{
			Name: "restrict", Method: post, Path: wire.RestrictionsPath, Summary: "Put the next restriction list of an environment in force", Tag: "environments",
			Kind: Changes, Permission: registry.PermissionApprove, Limit: signedBody, Problems: []int{http.StatusConflict},
			Examples: []Example{with("the next list", Restriction{Environment: "prod", Bundle: []byte("{}")}, wire.IdempotencyKey, "c0ffee-6")},
		},
		At: func(q Restriction) (string, string) { return q.Environment, "" },
		Do: func(ctx context.Context, r registry.Interface, q Restriction) (registry.SignedRestrictions, error) {
			return r.Restrict(ctx, q.Environment, q.Bundle)
		},
		Check: func(q Restriction, a registry.SignedRestrictions) (string, error) {
			return "restrictions", checkRestrictions(q.Environment, a)
		},
	}
	// PublishTrust concerns every environment.
	PublishTrust = &Operation[TrustBundle, registry.SignedTrust]{
		Row: Row{
			Name: "publishTrust", Method: post, Path: wire.TrustBundlePath, Summary: "Publish the next trust bundle", Tag: "environments",
			Kind: Changes, Permission: administer, Limit: signedBody, Problems: []int{http.StatusConflict},
			Examples: []Example{with("the next", TrustBundle{Bundle: []byte("{} ")}, wire.IdempotencyKey, "c0ffee-7")},
		},
		At: func(TrustBundle) (string, string) { return "", "" },
		Do: func(ctx context.Context, r registry.Interface, q TrustBundle) (registry.SignedTrust, error) {
			return r.PublishTrust(ctx, q.Bundle)
		},
		Check: func(_ TrustBundle, a registry.SignedTrust) (string, error) { return "trust bundle", checkTrust(a) },
	}
)

// allButRead are the permissions of which one is needed to attach evidence: that of the role that signed it.
func allButRead() []registry.Permission {
	return slices.DeleteFunc(registry.Permissions(), func(p registry.Permission) bool { return p == read })
}
