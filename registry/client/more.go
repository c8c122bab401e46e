package client

import (
	"context"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// These are operations of a service beyond [api.Interface].

// VerifyHistory asks the service to check its whole history.
func (c *Client) VerifyHistory(ctx context.Context) (rest.Verification, error) {
	var v rest.Verification
	_, err := c.send(ctx, &rest.HistoryFaults.Row, rest.None{}, &v)
	return v, err
}

// Targets lists the targets of the engines at the heads of an environment, or of all if it is
// empty. A target whose engines are on several pages appears several times.
func (c *Client) Targets(ctx context.Context, environment string) ([]rest.TargetUse, error) {
	q := rest.ModelsQuery{Environment: environment, Paging: rest.Paging{Limit: storage.MaxPage}}
	return all[rest.TargetUse](ctx, c, &rest.Targets.Row, q, 0)
}

// Quarantines lists the quarantines of a release and its engines that are not lifted. The
// release is named by tag or digest; empty means the head.
func (c *Client) Quarantines(ctx context.Context, environment, model, tagOrDigest string) ([]rest.Quarantine, error) {
	return rest.Ask(ctx, c.call, rest.Quarantines, rest.ReleaseQuery{Environment: environment, Model: model, Ref: tagOrDigest})
}

// Operations reads what administrators of the service look after.
func (c *Client) Operations(ctx context.Context) (api.Operations, error) {
	return rest.Ask(ctx, c.call, rest.Administration, rest.None{})
}

// PromotionCheck asks whether a release may be promoted. Errors: those of [api.PromotionChecker]; CodeUnavailable if the answer is
// about another release or environment.
func (c *Client) PromotionCheck(ctx context.Context, q api.PromotionQuery) (api.PromotionCheck, error) {
	return rest.Ask(ctx, c.call, rest.AskPromotion, q)
}

// Promotion reads a promotion by the number of its event. Errors: CodeNotFound.
func (c *Client) Promotion(ctx context.Context, seq int64) (history.Event, error) {
	return rest.Ask(ctx, c.call, rest.PromotionEvent, rest.EventQuery{Seq: seq})
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
		rest.ResolveRequest{
			Model:       q.Model,
			Environment: q.Environment,
			Version:     q.Version,
			Variant:     q.Variant,
			As:          string(q.As),
			Runtime:     q.Runtime,
			Labels:      labels,
		},
	)
}

// Configuration returns how the configuration of a replica compares with the agreed one.
func (c *Client) Configuration(ctx context.Context) (history.ConfigurationStatus, error) {
	return rest.Ask(ctx, c.call, rest.ConfigurationState, rest.None{})
}

// AdoptConfiguration makes the configuration in the files of a replica the agreed one. want is
// the expected configuration of the files. Errors: CodeConflict if the files differ from it.
func (c *Client) AdoptConfiguration(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error) {
	return rest.Ask(ctx, c.call, rest.AdoptConfiguration, rest.Adoption{Adopt: want})
}

// Webhooks lists webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]rest.Webhook, error) {
	return all[rest.Webhook](ctx, c, &rest.ListWebhooks.Row, rest.Paging{}, 0)
}

// Webhook reads one webhook. Errors: CodeNotFound.
func (c *Client) Webhook(ctx context.Context, id string) (rest.Webhook, error) {
	return rest.Ask(ctx, c.call, rest.GetWebhook, rest.IDQuery{ID: id})
}

// AddWebhook registers a webhook. Only its result has the secret.
func (c *Client) AddWebhook(ctx context.Context, r rest.WebhookRequest) (rest.Webhook, error) {
	return rest.Ask(ctx, c.call, rest.AddWebhook, r)
}

// PutWebhook changes a webhook and resumes its deliveries. Errors: CodeNotFound.
func (c *Client) PutWebhook(ctx context.Context, id string, r rest.WebhookRequest) (rest.Webhook, error) {
	r.ID = id
	return rest.Ask(ctx, c.call, rest.PutWebhook, r)
}

// DeleteWebhook deletes a webhook. Errors: CodeNotFound.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := rest.Ask(ctx, c.call, rest.DeleteWebhook, rest.IDQuery{ID: id})
	return err
}

// ListTokens lists all tokens, including expired and revoked ones.
func (c *Client) ListTokens(ctx context.Context) ([]storage.Token, error) {
	return all[storage.Token](ctx, c, &rest.ListTokens.Row, rest.Paging{}, 0)
}

// CreateToken creates a token. It sends only the hash of the secret. The service sets the
// creation time. Errors: CodeConflict.
func (c *Client) CreateToken(ctx context.Context, t storage.Token) error {
	_, err := rest.Ask(ctx, c.call, rest.AddToken, rest.NewTokenRequest(t))
	return err
}

// RevokeToken revokes a token now, by the clock of the service. Errors: CodeNotFound.
func (c *Client) RevokeToken(ctx context.Context, id string, _ time.Time) error {
	_, err := rest.Ask(ctx, c.call, rest.RevokeToken, rest.IDQuery{ID: id})
	return err
}

// Checkpoint asks for a signed checkpoint of all events. Its signature is not verified here.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	return rest.Ask(ctx, c.call, rest.Checkpoint, rest.None{})
}

// Proof asks for a proof that a checkpoint covers an event. It is not checked here. Errors:
// CodeNotFound.
func (c *Client) Proof(ctx context.Context, seq int64) ([]byte, error) {
	return rest.Ask(ctx, c.call, rest.Proof, rest.EventQuery{Seq: seq})
}

// KeptAfter lists up to limit checkpoints of more than size events that the service keeps, by size.
func (c *Client) KeptAfter(ctx context.Context, size int64, limit int) ([]trust.KeptCheckpoint, error) {
	q := rest.AfterQuery{After: strconv.FormatInt(size, 10), Paging: rest.Paging{Limit: storage.PageLimit(limit)}}
	return all[trust.KeptCheckpoint](ctx, c, &rest.Checkpoints.Row, q, limit)
}

// ReportNode says that a node has an engine.
func (c *Client) ReportNode(ctx context.Context, r storage.NodeReport) (storage.NodeReport, error) {
	return rest.Ask(ctx, c.call, rest.ReportNode, rest.NodeReport{
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
	return rest.Ask(ctx, c.call, rest.NodeReports, rest.NodeReportsQuery{
		Environment: environment, Model: model, Silent: silent, Paging: rest.Paging{Limit: storage.PageLimit(limit), Cursor: after},
	})
}
