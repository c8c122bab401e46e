// Package client is a registry.Interface over REST. Releases it reads from content,
// over the same service's OCI endpoint, where each byte is checked against a digest.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Config says which service to speak to. URL and Content are required.
type Config struct {
	URL     string           // "http://127.0.0.1:5080"
	Content registry.Content // over the service's /v2/
	HTTP    *http.Client     // nil means http.DefaultClient
}

// Client implements registry.Interface. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	content registry.Content
	http    *http.Client
}

var _ registry.Interface = (*Client)(nil)

// New checks the configuration; it does not dial. Errors: CodeInvalid.
func New(c Config) (*Client, error) {
	base, err := ParseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Content == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "client: content is required")
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	return &Client{base: base, content: c.Content, http: c.HTTP}, nil
}

// ParseURL reads the URL of a service: scheme and host, and nothing behind them.
// Errors: CodeInvalid.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(s, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "registry URL %q: want http://HOST:PORT or https://HOST", s)
	}
	return u, nil
}

// Environments gives the chain of environments.
func (c *Client) Environments(ctx context.Context) (registry.Environments, error) {
	var environments registry.Environments
	return environments, c.get(ctx, wire.EnvironmentsPath, nil, &environments)
}

// Heads lists heads.
func (c *Client) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	var heads []registry.Head
	return heads, c.get(ctx, wire.HeadsPath, query("environment", environment, "model", model), &heads)
}

// History lists events.
func (c *Client) History(ctx context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	values := query("environment", q.Environment, "model", q.Model, "kind", string(q.Kind), "subject", string(q.Subject))
	if q.After > 0 {
		values.Set("after", strconv.FormatInt(q.After, 10))
	}
	if q.Descending {
		values.Set("order", "desc")
	}
	var events []registry.Event
	return events, c.get(ctx, wire.HistoryPath, values, &events)
}

// Resolve asks for the engine of a node.
func (c *Client) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	body := wire.ResolveRequest{Environment: q.Environment, Version: q.Version, Variant: q.Variant, Node: &q.Node, Runtime: q.Runtime}
	var resolution registry.Resolution
	problem, err := c.post(ctx, wire.ModelPath(q.Model, wire.OpResolve), body, &resolution)
	if problem != nil && problem.Resolution != nil {
		resolution = *problem.Resolution
	}
	return resolution, err
}

// Publish moves the first environment's head.
func (c *Client) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	var head registry.Head
	_, err := c.post(ctx, wire.ModelPath(p.Model, wire.OpPublications), wire.Publication{Release: p.Release}, &head)
	return head, err
}

// Attach adds evidence.
func (c *Client) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	body := wire.Attachment{Environment: a.Environment, Release: a.Release, Subject: a.Subject, Bundle: a.Bundle}
	var attached wire.Attached
	_, err := c.post(ctx, wire.ModelPath(a.Model, wire.OpEvidence), body, &attached)
	return attached.Bundle, err
}

// Promote asks for a promotion.
func (c *Client) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	body := wire.PromoteRequest{Reference: r.Reference, From: r.From, To: r.To, DryRun: r.DryRun}
	return c.move(ctx, wire.ModelPath(r.Model, wire.OpPromotions), body)
}

// Rollback asks for an earlier head.
func (c *Client) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	body := wire.RollbackRequest{Environment: r.Environment, Version: r.Version, Reason: r.Reason}
	return c.move(ctx, wire.ModelPath(r.Model, wire.OpRollbacks), body)
}

func (c *Client) move(ctx context.Context, path string, body any) (registry.Promotion, error) {
	var promotion registry.Promotion
	problem, err := c.post(ctx, path, body, &promotion)
	if problem != nil && problem.Promotion != nil {
		promotion = *problem.Promotion
	}
	return promotion, err
}

// ReleaseHold lets promotions move a held head again.
func (c *Client) ReleaseHold(ctx context.Context, environment, model, reason string) error {
	_, err := c.post(ctx, wire.ModelPath(model, wire.OpHoldReleases), wire.HoldRelease{Environment: environment, Reason: reason}, nil)
	return err
}

// Release asks the service which release is meant, and reads it by digest from the
// content, so that what it says is what its digest covers.
func (c *Client) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	environments, err := c.Environments(ctx)
	if err != nil {
		return registry.Release{}, err
	}
	if _, err := environments.Find(environment); err != nil {
		return registry.Release{}, err
	}
	if tagOrDigest == "" {
		heads, err := c.Heads(ctx, environment, model)
		if err != nil {
			return registry.Release{}, err
		}
		if len(heads) == 0 {
			return registry.Release{}, registry.Errorf(registry.CodeNotFound, "%s has no head in %s", model, environment)
		}
		tagOrDigest = string(heads[0].Release)
	}
	r, err := c.content.Release(ctx, registry.Repository(environment, model), tagOrDigest)
	if err == nil && r.Model != model {
		return registry.Release{}, registry.Errorf(registry.CodeTrust,
			"release %s in %s says that it is a release of %s, not of %s", r.Digest, environment, r.Model, model)
	}
	return r, err
}

// Claims lists evidence as the service's trust judges it.
func (c *Client) Claims(ctx context.Context, environment string, r registry.Release) ([]registry.Claim, []registry.Ignored, error) {
	var body wire.Claims
	path := wire.ModelPath(r.Model, wire.OpReleases, string(r.Digest), wire.OpClaims)
	if err := c.get(ctx, path, query("environment", environment), &body); err != nil {
		return nil, nil, err
	}
	var claims []registry.Claim
	for _, claim := range body.Claims {
		claims = append(claims, registry.Claim(claim))
	}
	return claims, body.Ignored, nil
}

// query makes a query of pairs of names and values, without the empty ones.
func query(pairs ...string) url.Values {
	values := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func (c *Client) get(ctx context.Context, path string, values url.Values, into any) error {
	u := c.base.JoinPath(path)
	u.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	_, err = c.do(request, into)
	return err
}

// post gives the problem as well, for what it carries beside the error.
func (c *Client) post(ctx context.Context, path string, body, into any) (*wire.Problem, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.do(request, into)
}

func (c *Client) do(request *http.Request, into any) (*wire.Problem, error) {
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		if cause := request.Context().Err(); cause != nil {
			return nil, cause
		}
		return nil, registry.Errorf(registry.CodeUnavailable, "no answer from %s: %w", c.base, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "answer of %s broke off: %w", c.base, err)
	}
	if response.StatusCode < 400 {
		if into == nil {
			return nil, nil
		}
		if err := json.Unmarshal(body, into); err != nil {
			return nil, registry.Errorf(registry.CodeUnavailable, "%s is no mlpromote service: %w", c.base, err)
		}
		return nil, nil
	}
	var problem wire.Problem
	if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
		return nil, registry.Errorf(registry.CodeUnavailable, "%s answered %s and is no mlpromote service", request.URL, response.Status)
	}
	return &problem, problem.Err()
}

// maxAnswer bounds what is read of an answer: long histories and all claims of a release.
const maxAnswer = 256 << 20
