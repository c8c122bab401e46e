package client

import (
	"context"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// These are operations of a service beyond [api.Interface].

// VerifyHistory asks the service to check its whole history.
func (c *Client) VerifyHistory(ctx context.Context) (api.Verification, error) {
	var v api.Verification
	_, err := c.send(ctx, &api.HistoryFaults.Row, api.None{}, &v)
	return v, err
}

// Targets lists the targets of the engines at the heads of an environment, or of all if it is
// empty. A target whose engines are on several pages appears several times.
func (c *Client) Targets(ctx context.Context, environment string) ([]api.TargetUse, error) {
	q := api.ModelsQuery{Environment: environment, Paging: api.Paging{Limit: storage.MaxPage}}
	return all[api.TargetUse](ctx, c, &api.Targets.Row, q, 0)
}

// Quarantines lists the quarantines of a release and its engines that are not lifted. The
// release is named by tag or digest; empty means the head.
func (c *Client) Quarantines(ctx context.Context, environment, model, tagOrDigest string) ([]api.Quarantine, error) {
	return api.Ask(ctx, c.call, api.Quarantines, api.ReleaseQuery{Environment: environment, Model: model, Ref: tagOrDigest})
}

// Operations reads what administrators of the service look after.
func (c *Client) Operations(ctx context.Context) (api.Operations, error) {
	return api.Ask(ctx, c.call, api.Administration, api.None{})
}

// PromotionCheck asks whether a release may be promoted. Errors: those of [api.PromotionChecker]; CodeUnavailable if the answer is
// about another release or environment.
func (c *Client) PromotionCheck(ctx context.Context, q api.PromotionQuery) (api.PromotionCheck, error) {
	return api.Ask(ctx, c.call, api.AskPromotion, q)
}

// Promotion reads a promotion by the number of its event. Errors: CodeNotFound.
func (c *Client) Promotion(ctx context.Context, seq int64) (history.Event, error) {
	return api.Ask(ctx, c.call, api.PromotionEvent, api.EventQuery{Seq: seq})
}

// ResolveLabels resolves the engine for a node with these Kubernetes labels. It uses q.Runtime
// for the software and ignores q.Node.
func (c *Client) ResolveLabels(
	ctx context.Context,
	q api.ResolveQuery,
	labels map[string]string,
) (api.Resolution, error) {
	return c.resolve(
		ctx,
		api.ResolveRequest{
			Model:       q.Model,
			Environment: q.Environment,
			Version:     q.Version,
			Variant:     q.Variant,
			Runtime:     q.Runtime,
			Labels:      labels,
		},
	)
}

// Configuration returns how the configuration of a replica compares with the agreed one.
func (c *Client) Configuration(ctx context.Context) (history.ConfigurationStatus, error) {
	return api.Ask(ctx, c.call, api.ConfigurationState, api.None{})
}

// AdoptConfiguration makes the configuration in the files of a replica the agreed one. want is
// the expected configuration of the files. Errors: CodeConflict if the files differ from it.
func (c *Client) AdoptConfiguration(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error) {
	return api.Ask(ctx, c.call, api.AdoptConfiguration, api.Adoption{Adopt: want})
}

// Webhooks lists webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]api.Webhook, error) {
	return all[api.Webhook](ctx, c, &api.ListWebhooks.Row, api.Paging{}, 0)
}

// Webhook reads one webhook. Errors: CodeNotFound.
func (c *Client) Webhook(ctx context.Context, id string) (api.Webhook, error) {
	return api.Ask(ctx, c.call, api.GetWebhook, api.IDQuery{ID: id})
}

// AddWebhook registers a webhook. Only its result has the secret.
func (c *Client) AddWebhook(ctx context.Context, r api.WebhookRequest) (api.Webhook, error) {
	return api.Ask(ctx, c.call, api.AddWebhook, r)
}

// PutWebhook changes a webhook and resumes its deliveries. Errors: CodeNotFound.
func (c *Client) PutWebhook(ctx context.Context, id string, r api.WebhookRequest) (api.Webhook, error) {
	r.ID = id
	return api.Ask(ctx, c.call, api.PutWebhook, r)
}

// DeleteWebhook deletes a webhook. Errors: CodeNotFound.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := api.Ask(ctx, c.call, api.DeleteWebhook, api.IDQuery{ID: id})
	return err
}

// ListTokens lists all tokens, including expired and revoked ones.
func (c *Client) ListTokens(ctx context.Context) ([]storage.Token, error) {
	return all[storage.Token](ctx, c, &api.ListTokens.Row, api.Paging{}, 0)
}

// CreateToken creates a token. It sends only the hash of the secret. The service sets the
// creation time. Errors: CodeConflict.
func (c *Client) CreateToken(ctx context.Context, t storage.Token) error {
	_, err := api.Ask(ctx, c.call, api.AddToken, api.NewTokenRequest(t))
	return err
}

// RevokeToken revokes a token now, by the clock of the service. Errors: CodeNotFound.
func (c *Client) RevokeToken(ctx context.Context, id string, _ time.Time) error {
	_, err := api.Ask(ctx, c.call, api.RevokeToken, api.IDQuery{ID: id})
	return err
}

// Checkpoint asks for a signed checkpoint of all events. Its signature is not verified here.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	return api.Ask(ctx, c.call, api.Checkpoint, api.None{})
}

// Proof asks for a proof that a checkpoint covers an event. It is not checked here. Errors:
// CodeNotFound.
func (c *Client) Proof(ctx context.Context, seq int64) ([]byte, error) {
	return api.Ask(ctx, c.call, api.Proof, api.EventQuery{Seq: seq})
}

// KeptAfter lists up to limit checkpoints of more than size events that the service keeps, by size.
func (c *Client) KeptAfter(ctx context.Context, size int64, limit int) ([]trust.KeptCheckpoint, error) {
	q := api.AfterQuery{After: strconv.FormatInt(size, 10), Paging: api.Paging{Limit: storage.PageLimit(limit)}}
	return all[trust.KeptCheckpoint](ctx, c, &api.Checkpoints.Row, q, limit)
}

// ReportNode says that a node has an engine.
func (c *Client) ReportNode(ctx context.Context, r storage.NodeReport) (storage.NodeReport, error) {
	return api.Ask(ctx, c.call, api.ReportNode, api.NodeReport{
		Node: r.Node, NodeType: r.NodeType, Environment: r.Environment, Model: r.Model, Release: r.Release, Engine: r.Engine, Machine: r.Machine,
	})
}

// NodeReports lists a page of reports. Next is an opaque cursor of the service.
func (c *Client) NodeReports(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return c.nodeReports(ctx, environment, model, false, after, limit)
}

// SilentNodes lists a page of reports that have expired. Next is an opaque cursor of the service.
func (c *Client) SilentNodes(ctx context.Context, environment, model, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return c.nodeReports(ctx, environment, model, true, after, limit)
}

func (c *Client) nodeReports(ctx context.Context, environment, model string, silent bool, after string, limit int) (storage.Page[storage.NodeReport], error) {
	return api.Ask(ctx, c.call, api.NodeReports, api.NodeReportsQuery{
		Environment: environment, Model: model, Silent: silent, Paging: api.Paging{Limit: storage.PageLimit(limit), Cursor: after},
	})
}
