// Package client is a registry.Interface over REST. Releases it reads from content,
// over the same service's OCI endpoint, where each byte is checked against a digest.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	straight := *c.HTTP
	straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, content: c.Content, http: &straight}, nil
}

// ParseURL reads the URL of a service: scheme and host, and nothing behind them.
// Errors: CodeInvalid.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(s, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "registry URL %q: want http://HOST:PORT or https://HOST", s)
	}
	return u, nil
}

// Environments gives the chain of environments.
func (c *Client) Environments(ctx context.Context) (registry.Environments, error) {
	var environments registry.Environments
	if err := c.get(ctx, wire.EnvironmentsPath, nil, &environments); err != nil {
		return registry.Environments{}, err
	}
	if err := environments.Validate(); err != nil {
		return registry.Environments{}, c.strange("environments", err)
	}
	return environments, nil
}

// Heads lists heads.
func (c *Client) Heads(ctx context.Context, environment, model string) ([]registry.Head, error) {
	var heads []registry.Head
	if err := c.get(ctx, wire.HeadsPath, query("environment", environment, "model", model), &heads); err != nil {
		return nil, err
	}
	for _, h := range heads {
		if err := h.Release.Validate(); err != nil {
			return nil, c.strange("head", err)
		}
	}
	return heads, nil
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
	problem, err := c.post(ctx, q.Model, wire.OpResolve, body, &resolution)
	switch {
	case problem != nil && problem.Resolution != nil:
		return *problem.Resolution, err
	case err != nil:
		return registry.Resolution{}, err
	case resolution.Engine == nil:
		return registry.Resolution{}, c.strange("resolution", errors.New("it has no engine"))
	}
	if err := errors.Join(resolution.Release.Validate(), resolution.Engine.Digest.Validate()); err != nil {
		return registry.Resolution{}, c.strange("resolution", err)
	}
	ref, err := registry.ParseReference(resolution.Reference)
	if err != nil {
		return registry.Resolution{}, c.strange("resolution", err)
	}
	if ref.Host == c.base.Host { // said for those who know no service, only references
		ref.Host = ""
	}
	resolution.Reference = ref.String()
	return resolution, nil
}

// Publish moves the first environment's head.
func (c *Client) Publish(ctx context.Context, p registry.Publication) (registry.Head, error) {
	var head registry.Head
	if _, err := c.post(ctx, p.Model, wire.OpPublications, wire.Publication{Release: p.Release}, &head); err != nil {
		return registry.Head{}, err
	}
	if head.Release != p.Release {
		return registry.Head{}, c.strange("head", fmt.Errorf("it is at %q, not at the published %s", head.Release, p.Release))
	}
	return head, nil
}

// Attach adds evidence.
func (c *Client) Attach(ctx context.Context, a registry.Attachment) (registry.Digest, error) {
	body := wire.Attachment{Environment: a.Environment, Release: a.Release, Subject: a.Subject, Bundle: a.Bundle}
	var attached wire.Attached
	if _, err := c.post(ctx, a.Model, wire.OpEvidence, body, &attached); err != nil {
		return "", err
	}
	if err := attached.Bundle.Validate(); err != nil {
		return "", c.strange("bundle", err)
	}
	return attached.Bundle, nil
}

// Promote asks for a promotion.
func (c *Client) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	body := wire.PromoteRequest{Reference: r.Reference, From: r.From, To: r.To, DryRun: r.DryRun}
	return c.move(ctx, r.Model, wire.OpPromotions, body)
}

// Rollback asks for an earlier head.
func (c *Client) Rollback(ctx context.Context, r registry.RollbackRequest) (registry.Promotion, error) {
	body := wire.RollbackRequest{Environment: r.Environment, Version: r.Version, Reason: r.Reason}
	return c.move(ctx, r.Model, wire.OpRollbacks, body)
}

func (c *Client) move(ctx context.Context, model, operation string, body any) (registry.Promotion, error) {
	var promotion registry.Promotion
	problem, err := c.post(ctx, model, operation, body, &promotion)
	switch {
	case problem != nil && problem.Promotion != nil:
		return *problem.Promotion, err
	case err != nil:
		return registry.Promotion{}, err
	}
	if err := promotion.Release.Validate(); err != nil {
		return registry.Promotion{}, c.strange("promotion", err)
	}
	return promotion, nil
}

// ReleaseHold lets promotions move a held head again.
func (c *Client) ReleaseHold(ctx context.Context, environment, model, reason string) error {
	_, err := c.post(ctx, model, wire.OpHoldReleases, wire.HoldRelease{Environment: environment, Reason: reason}, nil)
	return err
}

// Release asks the service which release is meant, and reads it by digest from the
// content, so that what it says is what its digest covers.
func (c *Client) Release(ctx context.Context, environment, model, tagOrDigest string) (registry.Release, error) {
	var meant registry.Release
	if err := c.getOf(ctx, model, wire.OpReleases, query("environment", environment, "reference", tagOrDigest), &meant); err != nil {
		return registry.Release{}, err
	}
	if err := meant.Digest.Validate(); err != nil {
		return registry.Release{}, c.strange("release", err)
	}
	if asked := registry.Digest(tagOrDigest); asked.Validate() == nil && asked != meant.Digest {
		return registry.Release{}, registry.Errorf(registry.CodeDigest, "%s was asked for release %s and answered with %s", c.base, asked, meant.Digest)
	}
	r, err := c.content.Release(ctx, registry.Repository(environment, model), string(meant.Digest))
	if err == nil && r.Model != model {
		return registry.Release{}, registry.Errorf(registry.CodeTrust,
			"release %s in %s says that it is a release of %s, not of %s", r.Digest, environment, r.Model, model)
	}
	return r, err
}

// Claims lists evidence as the service's trust judges it.
func (c *Client) Claims(ctx context.Context, environment string, r registry.Release) ([]registry.Claim, []registry.Ignored, error) {
	var body wire.Claims
	about := query("environment", environment, "reference", string(r.Digest))
	if err := c.getOf(ctx, r.Model, wire.OpClaims, about, &body); err != nil {
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at(path, values), nil)
	if err != nil {
		return err
	}
	_, err = c.do(request, into)
	return err
}

func (c *Client) getOf(ctx context.Context, model, operation string, values url.Values, into any) error {
	path, err := wire.ModelPath(model, operation)
	if err != nil {
		return err
	}
	return c.get(ctx, path, values, into)
}

// post gives the problem as well, for what it carries beside the error.
func (c *Client) post(ctx context.Context, model, operation string, body, into any) (*wire.Problem, error) {
	path, err := wire.ModelPath(model, operation)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at(path, nil), bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.do(request, into)
}

func (c *Client) at(path string, values url.Values) string {
	u := *c.base
	u.Path, u.RawQuery = path, values.Encode()
	return u.String()
}

// do sends a request. An answer that is an error comes back as one, with its problem.
func (c *Client) do(request *http.Request, into any) (*wire.Problem, error) {
	request.Header.Set("Accept", "application/json")
	status, body, err := c.exchange(request)
	if cause := request.Context().Err(); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "no answer from %s: %w", c.base, err)
	}
	if status/100 != 2 {
		var problem wire.Problem
		if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
			return nil, registry.Errorf(registry.CodeUnavailable, "%s answered %d %s and is no mlpromote service", request.URL, status, http.StatusText(status))
		}
		return &problem, problem.Err()
	}
	if into == nil {
		return nil, nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, c.strange("body", err)
	}
	return nil, nil
}

func (c *Client) exchange(request *http.Request) (status int, body []byte, err error) {
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, body, err
}

// strange is an answer that says yes and nothing that can be used.
func (c *Client) strange(what string, err error) error {
	return registry.Errorf(registry.CodeUnavailable, "%s is no mlpromote service, or one of another version: its answer's %s: %s", c.base, what, err.Error())
}

// maxAnswer bounds what is read of an answer: long histories and all claims of a release.
const maxAnswer = 256 << 20
