package rest

import (
	"context"
	"net/http"
	"slices"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	remove = http.MethodDelete

	read       = storage.PermissionRead
	administer = storage.PermissionAdminister
)

// Largest request bodies in bytes.
const (
	SmallBody    = 64 << 10  // names, digests, a comment: of a row without a limit
	documentBody = 512 << 10 // what a machine or a runtime is, with all of its labels
	signedBody   = 6 << 20   // a signed document of at most 4 MiB: base64 adds a third
	evidenceBody = MaxBody   // a bundle with its per-case figures
)

// StreamType is the media type of server-sent events.
const StreamType = "text/event-stream"

// Table lists every operation. The first route that matches a path is its label in metrics.
func Table() []Any {
	return slices.Concat([]Any{
		OpenAPI, Environments, Heads, Models, Targets, History, HistoryFaults, Restrictions, Restrict, NewestTrust, PublishTrust,
		NodeReports, ReportNode, Checkpoint, Checkpoints, Proof, Events, PromotionEvent,
		ResolveFacts, Resolve, Releases, Release, Engines, Engine, Evidence, Quarantines, Comparison, Bundle,
		Attach, Attest, Publish, Promotions, AskPromotion, Promote, Rollback, SetHold, ReleaseHold, AcceptHistory,
	},
		NodeTypes.rows(), Runtimes.rows(),
		[]Any{
			ListWebhooks, AddWebhook, GetWebhook, PutWebhook, DeleteWebhook, ListTokens, AddToken, GetToken, RevokeToken,
			ConfigurationState, AdoptConfiguration, Administration,
		})
}

// The operations that change the head of a model, or decide about it.
var (
	Publish = &Operation[api.Publication, history.Head]{
		Row: Row{
			Name: "publish", Method: post, Path: at(OpPublications), Summary: "Move the first environment's head to a release that was built there", Tag: "promotions",
			Kind: Changes, Permission: storage.PermissionPush, Traced: true,
			Examples: []Example{with("a release", api.Publication{Release: exampleRelease}, "model", exampleModel)},
		},
		At: func(q api.Publication) (string, string) { return "", q.Model },
		Needs: func(ctx context.Context, r api.Interface, q api.Publication) (Place, error) {
			environments, err := r.Environments(ctx)
			if err != nil {
				return Place{}, err
			}
			return Place{storage.PermissionPush, environments.First().Name, q.Model}, nil
		},
		Do: func(ctx context.Context, r api.Interface, q api.Publication) (history.Head, error) {
			return r.Publish(ctx, q)
		},
		Check: checkPublished,
	}
	Attach = &Operation[api.Attachment, Attached]{
		Row: Row{
			Name: "attach", Method: post, Path: at(OpEvidence), Summary: "Attach signed evidence: reports, approvals, quarantines and their lifts", Tag: "evidence",
			Kind: Changes, Permission: storage.PermissionVerify, AnyOf: allButRead(), Traced: true, Limit: evidenceBody, Status: http.StatusCreated,
			Examples: []Example{with("a report", object{"environment": "staging", "release": exampleRelease, "subject": exampleEngine, "bundle": exampleBytes},
				"model", exampleModel, IdempotencyKey, "c0ffee-1")},
		},
		At: func(q api.Attachment) (string, string) { return q.Environment, q.Model },
		Needs: func(_ context.Context, _ api.Interface, q api.Attachment) (Place, error) {
			permission, err := attachPermission(q.Bundle)
			return Place{permission, q.Environment, q.Model}, err
		},
		Do: func(ctx context.Context, r api.Interface, q api.Attachment) (Attached, error) {
			d, err := r.Attach(ctx, q)
			return Attached{d}, err
		},
		Check: func(_ api.Attachment, a Attached) (string, error) { return "bundle", a.Bundle.Validate() },
	}
	// Attest needs the permission for the environment that the person speaks about. As with Promote, a caller who may
	// decide about the destination may use the source.
	Attest = &Operation[evidence.AttestRequest, evidence.Attested]{
		Row: Row{
			Name: "attest", Method: post, Path: at(OpAttestations), Summary: "Have the service sign an approval, its withdrawal or a quarantine in the caller's name", Tag: "evidence",
			Kind: Changes, Permission: storage.PermissionAttest, Traced: true, Status: http.StatusCreated,
			Examples: []Example{
				with("an approval", evidence.AttestRequest{Kind: evidence.AttestApproval, Environment: "prod", Release: exampleRelease, Comment: "load test passed"}, "model", exampleModel, IdempotencyKey, "c0ffee-8"),
				with("a quarantine", evidence.AttestRequest{Kind: evidence.AttestQuarantine, Environment: "prod", Release: exampleRelease, Subject: exampleEngine, Comment: "wrong at night"}, "model", exampleModel),
			},
		},
		At: func(q evidence.AttestRequest) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q evidence.AttestRequest) (evidence.Attested, error) {
			return r.Attest(ctx, q)
		},
		Check: checkAttested,
	}
	// Promote needs the permission for the destination only. A caller who may decide about the destination may use the source.
	// A dry run changes nothing, but it must not return a decision made under rules other than the agreed ones.
	Promote = &Operation[api.PromoteRequest, api.Promotion]{
		Row: Row{
			Name: "promote", Method: post, Path: at(OpPromotions), Summary: "Promote a release to the next environment", Tag: "promotions",
			Kind: Changes, Permission: storage.PermissionPromote, Traced: true,
			Examples: []Example{
				with("ask", api.PromoteRequest{DryRun: true}, "model", exampleModel),
				with("a version", api.PromoteRequest{Ref: "1.0.0", From: "staging", To: "prod"}, "model", exampleModel, IdempotencyKey, "c0ffee-2"),
			},
		},
		At:   func(q api.PromoteRequest) (string, string) { return q.To, q.Model },
		Asks: func(q api.PromoteRequest) bool { return q.DryRun },
		Needs: func(ctx context.Context, r api.Interface, q api.PromoteRequest) (Place, error) {
			environments, err := r.Environments(ctx)
			if err != nil {
				return Place{}, err
			}
			_, to, err := environments.Edge(q.From, q.To)
			return Place{storage.PermissionPromote, to.Name, q.Model}, err
		},
		Do: func(ctx context.Context, r api.Interface, q api.PromoteRequest) (api.Promotion, error) {
			return r.Promote(ctx, q)
		},
		Check: checkPromotion[api.PromoteRequest],
	}
	Rollback = &Operation[api.RollbackRequest, api.Promotion]{
		Row: Row{
			Name: "rollback", Method: post, Path: at(OpRollbacks), Summary: "Move an environment back to an earlier head", Tag: "promotions",
			Kind: Changes, Permission: storage.PermissionPromote, Traced: true,
			Examples: []Example{with("to a version", api.RollbackRequest{Environment: "prod", Version: "1.0.0", Reason: "answers are wrong at night"}, "model", exampleModel)},
		},
		At: func(q api.RollbackRequest) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q api.RollbackRequest) (api.Promotion, error) {
			return r.Rollback(ctx, q)
		},
		Check: checkPromotion[api.RollbackRequest],
	}
	SetHold = &Operation[Hold, None]{
		Row: Row{
			Name: "setHold", Method: post, Path: at(OpHolds), Summary: "Stop promotions from moving a head", Tag: "promotions",
			Kind: Changes, Permission: storage.PermissionPromote,
			Examples: []Example{with("wait", Hold{Environment: "prod", Reason: "the answers are being looked at"}, "model", exampleModel)},
		},
		At: func(q Hold) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q Hold) (None, error) {
			return None{}, r.SetHold(ctx, q.Environment, q.Model, q.Reason)
		},
	}
	ReleaseHold = &Operation[api.HoldRelease, None]{
		Row: Row{
			Name: "releaseHold", Method: post, Path: at(OpHoldReleases), Summary: "Let promotions move a held head again", Tag: "promotions",
			Kind: Changes, Permission: storage.PermissionPromote,
			Examples: []Example{with("go on", api.HoldRelease{Environment: "prod", Reason: "1.1.0 mends it"}, "model", exampleModel)},
		},
		At: func(q api.HoldRelease) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q api.HoldRelease) (None, error) {
			return None{}, r.ReleaseHold(ctx, q)
		},
	}
	AcceptHistory = &Operation[HistoryAcceptance, None]{
		Row: Row{
			Name: "acceptHistory", Method: post, Path: at(OpAcceptances), Summary: "Accept what the history does not explain, so that promotions continue", Tag: "history",
			Kind: Changes, Permission: administer,
			Examples: []Example{with("after a restore", HistoryAcceptance{Environment: "prod", Reason: "restored from Tuesday's backup"}, "model", exampleModel)},
		},
		At: func(q HistoryAcceptance) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q HistoryAcceptance) (None, error) {
			return None{}, r.AcceptHistory(ctx, q.Environment, q.Model, q.Reason)
		},
	}
	// Restrict needs the permission for every model of the environment.
	Restrict = &Operation[Restriction, restriction.SignedRestrictions]{
		Row: Row{
			Name: "restrict", Method: post, Path: RestrictionsPath, Summary: "Put the next restriction list of an environment in force", Tag: "environments",
			Kind: Changes, Permission: storage.PermissionApprove, Limit: signedBody, Problems: []int{http.StatusConflict},
			Examples: []Example{with("the next list", Restriction{Environment: "prod", Bundle: []byte("{}")}, IdempotencyKey, "c0ffee-6")},
		},
		At: func(q Restriction) (string, string) { return q.Environment, "" },
		Do: func(ctx context.Context, r api.Interface, q Restriction) (restriction.SignedRestrictions, error) {
			return r.Restrict(ctx, q.Environment, q.Bundle)
		},
		Check: func(q Restriction, a restriction.SignedRestrictions) (string, error) {
			return "restrictions", checkRestrictions(q.Environment, a)
		},
	}
	// PublishTrust concerns every environment.
	PublishTrust = &Operation[TrustBundle, trust.SignedTrust]{
		Row: Row{
			Name: "publishTrust", Method: post, Path: TrustBundlePath, Summary: "Publish the next trust bundle", Tag: "environments",
			Kind: Changes, Permission: administer, Limit: signedBody, Problems: []int{http.StatusConflict},
			Examples: []Example{with("the next", TrustBundle{Bundle: []byte("{} ")}, IdempotencyKey, "c0ffee-7")},
		},
		At: func(TrustBundle) (string, string) { return "", "" },
		Do: func(ctx context.Context, r api.Interface, q TrustBundle) (trust.SignedTrust, error) {
			return r.PublishTrust(ctx, q.Bundle)
		},
		Check: func(_ TrustBundle, a trust.SignedTrust) (string, error) { return "trust bundle", checkTrust(a) },
	}
)

// allButRead are the permissions of which one is needed to attach evidence: that of the role that signed it.
func allButRead() []storage.Permission {
	return slices.DeleteFunc(storage.Permissions(), func(p storage.Permission) bool { return p == read })
}
