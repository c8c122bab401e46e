package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// What the API tells beside what [registry.Interface] asks.
type (
	// Verification is whether the chain of the history is whole.
	Verification = wire.Verification
	// TargetUse is a target, and the engines at heads that were made for it.
	TargetUse = wire.TargetUse
	// TargetEngine is an engine at a head.
	TargetEngine = wire.TargetEngine
	// Quarantine is a quarantine that nothing has lifted.
	Quarantine = wire.Quarantine
	// Webhook is a registered webhook and how far it was told.
	Webhook = wire.Webhook
	// WebhookRequest is what a webhook is to be told, and where.
	WebhookRequest = wire.WebhookRequest
)

// VerifyHistory lets the service check the chain of its whole history.
func (c *Client) VerifyHistory(ctx context.Context) (Verification, error) {
	var v Verification
	return v, c.get(ctx, wire.VerificationPath, nil, &v)
}

// Targets lists what the engines at the heads of an environment, of all if it is empty,
// were made for. A target of engines on several pages comes several times.
func (c *Client) Targets(ctx context.Context, environment string) ([]TargetUse, error) {
	return all[TargetUse](ctx, c, wire.TargetsPath, query("environment", environment, "limit", strconv.Itoa(registry.MaxPage)), 0)
}

// Quarantines lists the quarantines of a release and its engines that nothing has lifted. The
// release is named by tag or digest; empty means the head.
func (c *Client) Quarantines(ctx context.Context, environment, model, tagOrDigest string) ([]Quarantine, error) {
	path, err := wire.ModelPath(model, wire.OpQuarantines)
	if err != nil {
		return nil, err
	}
	var found []Quarantine
	return found, c.get(ctx, path, query("environment", environment, "reference", tagOrDigest), &found)
}

// Promotion reads a promotion by the number of its event. Errors: CodeNotFound.
func (c *Client) Promotion(ctx context.Context, seq int64) (registry.Event, error) {
	var e registry.Event
	return e, c.get(ctx, wire.PromotionsPath+strconv.FormatInt(seq, 10), nil, &e)
}

// ResolveLabels asks for the engine of the node that has these Kubernetes labels. Its
// software is that of q.Runtime; q.Node counts for nothing.
func (c *Client) ResolveLabels(ctx context.Context, q registry.ResolveQuery, labels map[string]string) (registry.Resolution, error) {
	return c.resolve(ctx, q.Model, wire.ResolveRequest{Environment: q.Environment, Version: q.Version, Variant: q.Variant, Runtime: q.Runtime, Labels: labels})
}

// Configuration asks a replica how its configuration stands to the one that was agreed on.
func (c *Client) Configuration(ctx context.Context) (registry.ConfigurationStatus, error) {
	var s registry.ConfigurationStatus
	return s, c.get(ctx, wire.ConfigurationPath, nil, &s)
}

// AdoptConfiguration makes what the files of a replica say what all replicas must have. want
// is what they are expected to say. Errors: CodeConflict where they say something else.
func (c *Client) AdoptConfiguration(ctx context.Context, want registry.Configuration) (registry.ConfigurationStatus, error) {
	var s registry.ConfigurationStatus
	_, err := c.send(ctx, http.MethodPost, wire.ConfigurationPath, wire.Adoption{Adopt: want}, &s)
	return s, err
}

// Webhooks lists webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]Webhook, error) {
	return all[Webhook](ctx, c, wire.WebhooksPath, make(url.Values), 0)
}

// Webhook reads one webhook. Errors: CodeNotFound.
func (c *Client) Webhook(ctx context.Context, id string) (Webhook, error) {
	var w Webhook
	return w, c.get(ctx, wire.WebhooksPath+"/"+id, nil, &w)
}

// AddWebhook registers a webhook. What it gives has the secret, which is told once.
func (c *Client) AddWebhook(ctx context.Context, r WebhookRequest) (Webhook, error) {
	var w Webhook
	_, err := c.send(ctx, http.MethodPost, wire.WebhooksPath, r, &w)
	return w, err
}

// PutWebhook changes a webhook, and resumes it where it was given up. Errors: CodeNotFound.
func (c *Client) PutWebhook(ctx context.Context, id string, r WebhookRequest) (Webhook, error) {
	var w Webhook
	_, err := c.send(ctx, http.MethodPut, wire.WebhooksPath+"/"+id, r, &w)
	return w, err
}

// DeleteWebhook deletes a webhook. Errors: CodeNotFound.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := c.send(ctx, http.MethodDelete, wire.WebhooksPath+"/"+id, nil, nil)
	return err
}

// ListTokens lists all tokens, also those that expired or were revoked.
func (c *Client) ListTokens(ctx context.Context) ([]registry.Token, error) {
	return all[registry.Token](ctx, c, wire.TokensPath, make(url.Values), 0)
}

// CreateToken lets the bearer of a secret in. The secret stays here: its hash is sent.
// When it was made is for the service to say. Errors: CodeConflict.
func (c *Client) CreateToken(ctx context.Context, t registry.Token) error {
	_, err := c.send(ctx, http.MethodPost, wire.TokensPath, wire.NewTokenRequest(t), nil)
	return err
}

// RevokeToken ends a token, now by the clock of the service. Errors: CodeNotFound.
func (c *Client) RevokeToken(ctx context.Context, id string, _ time.Time) error {
	_, err := c.send(ctx, http.MethodDelete, wire.TokensPath+"/"+url.PathEscape(id), nil, nil)
	return err
}
