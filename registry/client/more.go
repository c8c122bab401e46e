package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Types of the API beyond [registry.Interface].
type (
	// Verification is the result of a check of the history.
	Verification = wire.Verification
	// TargetUse is a target with the engines at heads that were built for it.
	TargetUse = wire.TargetUse
	// TargetEngine is an engine at a head.
	TargetEngine = wire.TargetEngine
	// Quarantine is a quarantine that is not lifted.
	Quarantine = wire.Quarantine
	// Webhook is a registered webhook with its delivery state.
	Webhook = wire.Webhook
	// WebhookRequest describes a webhook to register or change.
	WebhookRequest = wire.WebhookRequest
)

// VerifyHistory asks the service to check its whole history.
func (c *Client) VerifyHistory(ctx context.Context) (Verification, error) {
	var v Verification
	return v, c.get(ctx, wire.VerificationPath, nil, &v)
}

// Targets lists the targets of the engines at the heads of an environment, or of all if it is
// empty. A target whose engines are on several pages appears several times.
func (c *Client) Targets(ctx context.Context, environment string) ([]TargetUse, error) {
	return all[TargetUse](
		ctx,
		c,
		wire.TargetsPath,
		query("environment", environment, "limit", strconv.Itoa(registry.MaxPage)),
		0,
	)
}

// Quarantines lists the quarantines of a release and its engines that are not lifted. The
// release is named by tag or digest; empty means the head.
func (c *Client) Quarantines(ctx context.Context, environment, model, tagOrDigest string) ([]Quarantine, error) {
	path, err := wire.ModelPath(model, wire.OpQuarantines)
	if err != nil {
		return nil, err
	}
	var found []Quarantine
	return found, c.get(ctx, path, query("environment", environment, "ref", tagOrDigest), &found)
}

// Operations reads what administrators of the service look after.
func (c *Client) Operations(ctx context.Context) (registry.Operations, error) {
	var o registry.Operations
	return o, c.get(ctx, wire.OperationsPath, nil, &o)
}

// PromotionCheck asks whether a release may be promoted. Errors: those of [registry.PromotionChecker]; CodeUnavailable if the answer is
// about another release or environment.
func (c *Client) PromotionCheck(ctx context.Context, q registry.PromotionQuery) (registry.PromotionCheck, error) {
	var got registry.PromotionCheck
	values := query("environment", q.Environment, "version", q.Version, "digest", string(q.Digest))
	if err := c.getOf(ctx, q.Model, wire.OpPromotionCheck, values, &got); err != nil {
		return registry.PromotionCheck{}, err
	}
	same := (q.Version == "" || got.Version == q.Version) && (q.Digest == "" || got.Digest == q.Digest)
	if !same || got.Model != q.Model || got.Environment != q.Environment {
		return registry.PromotionCheck{}, c.strange("promotion check", errors.New("it is about another release"))
	}
	if got.Allowed && len(got.Reasons) > 0 {
		return registry.PromotionCheck{}, c.strange("promotion check", errors.New("it allows and has reasons why not"))
	}
	return got, nil
}

// Promotion reads a promotion by the number of its event. Errors: CodeNotFound.
func (c *Client) Promotion(ctx context.Context, seq int64) (registry.Event, error) {
	var e registry.Event
	return e, c.get(ctx, wire.PromotionsPath+strconv.FormatInt(seq, 10), nil, &e)
}

// ResolveLabels resolves the engine for a node with these Kubernetes labels. It uses q.Runtime
// for the software and ignores q.Node.
func (c *Client) ResolveLabels(
	ctx context.Context,
	q registry.ResolveQuery,
	labels map[string]string,
) (registry.Resolution, error) {
	return c.resolve(
		ctx,
		q.Model,
		wire.ResolveRequest{
			Environment: q.Environment,
			Version:     q.Version,
			Variant:     q.Variant,
			Runtime:     q.Runtime,
			Labels:      labels,
		},
	)
}

// Configuration returns how the configuration of a replica compares with the agreed one.
func (c *Client) Configuration(ctx context.Context) (registry.ConfigurationStatus, error) {
	var s registry.ConfigurationStatus
	return s, c.get(ctx, wire.ConfigurationPath, nil, &s)
}

// AdoptConfiguration makes the configuration in the files of a replica the agreed one. want is
// the expected configuration of the files. Errors: CodeConflict if the files differ from it.
func (c *Client) AdoptConfiguration(
	ctx context.Context,
	want registry.Configuration,
) (registry.ConfigurationStatus, error) {
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

// AddWebhook registers a webhook. Only its result has the secret.
func (c *Client) AddWebhook(ctx context.Context, r WebhookRequest) (Webhook, error) {
	var w Webhook
	_, err := c.send(ctx, http.MethodPost, wire.WebhooksPath, r, &w)
	return w, err
}

// PutWebhook changes a webhook and resumes its deliveries. Errors: CodeNotFound.
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

// ListTokens lists all tokens, including expired and revoked ones.
func (c *Client) ListTokens(ctx context.Context) ([]registry.Token, error) {
	return all[registry.Token](ctx, c, wire.TokensPath, make(url.Values), 0)
}

// CreateToken creates a token. It sends only the hash of the secret. The service sets the
// creation time. Errors: CodeConflict.
func (c *Client) CreateToken(ctx context.Context, t registry.Token) error {
	_, err := c.send(ctx, http.MethodPost, wire.TokensPath, wire.NewTokenRequest(t), nil)
	return err
}

// RevokeToken revokes a token now, by the clock of the service. Errors: CodeNotFound.
func (c *Client) RevokeToken(ctx context.Context, id string, _ time.Time) error {
	_, err := c.send(ctx, http.MethodDelete, wire.TokensPath+"/"+url.PathEscape(id), nil, nil)
	return err
}

// Checkpoint asks for a signed checkpoint of all events. Its signature is not verified here.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	var note []byte
	err := c.get(ctx, wire.CheckpointPath, nil, &note)
	return note, err
}

// Proof asks for a proof that a checkpoint covers an event. It is not checked here. Errors:
// CodeNotFound.
func (c *Client) Proof(ctx context.Context, seq int64) ([]byte, error) {
	var proof []byte
	err := c.get(ctx, wire.ProofsPath+strconv.FormatInt(seq, 10), nil, &proof)
	return proof, err
}

// KeptAfter lists up to limit checkpoints of more than size events that the service keeps, by size.
func (c *Client) KeptAfter(ctx context.Context, size int64, limit int) ([]registry.KeptCheckpoint, error) {
	values := query("after", strconv.FormatInt(size, 10), "limit", strconv.Itoa(registry.PageLimit(limit)))
	return all[registry.KeptCheckpoint](ctx, c, wire.CheckpointsPath, values, limit)
}
