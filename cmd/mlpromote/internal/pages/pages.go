// Package pages connects the pages for people with a service: what they show, who signs in, and how.
package pages

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web"
	"mlpromote.dev/mlpromote/web/page"
)

// Config is what pages need of one configuration of a service. All fields but URL are required.
type Config struct {
	Registry  api.Interface // with permissions checked
	Preview   api.Previewer // as [Preview] makes it
	NodeTypes storage.NodeTypes
	Runtimes  storage.Runtimes
	Parts     storage.PartStore // for comparisons of releases that the reader may see
	// Open opens stored content by digest.
	Open     func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error)
	Nodes    storage.NodeReporter // with permissions checked
	NodeLife time.Duration        // how long a report of a node counts; 0: none are taken
	// Operations says what administrators look after.
	Operations func(ctx context.Context) (api.Operations, error)

	Ways   []oidc.Way
	Wait   func(*http.Request) time.Duration // before a caller may ask again
	URL    string                            // as clients know the service; empty: as a reader reached it
	Logger *slog.Logger
}

// Site is what [New] returns.
type Site = web.Site

// New returns the pages. What they show of a promotion is decided by the rules that were agreed on, as a dry
// run is.
func New(c Config) (*Site, error) {
	var ways []page.Way
	for _, w := range c.Ways {
		ways = append(ways, page.Way{Name: w.Name, Issuer: w.Issuer})
	}
	return web.New(page.Config{
		SignIn:   &page.SignIn{Ways: ways, Token: signin.TokenPath, With: signin.WithPath, Out: signin.OutPath},
		Registry: c.Registry, Preview: c.Preview,
		Authorize: access.AllowRoute, ReadNode: readNode, NodeTypes: c.NodeTypes, Runtimes: c.Runtimes,
		Refused: access.RefusalOf, Compare: parts.Compare(c.Parts), Content: content{c.Parts, c.Open}.forPages(),
		Nodes: &page.NodeReports{From: c.Nodes, Life: c.NodeLife},
		Wait:  c.Wait, Operations: c.Operations, URL: c.URL, Now: clock.Now, Logger: c.Logger,
	})
}

// Handle adds the pages to a mux, and the requests by which people sign in and out. site and issuers return those
// in force; wrap adds what the service does around a handler.
func Handle(
	mux *http.ServeMux, g *authn.Authenticator, logger *slog.Logger,
	site func() *Site, issuers func() *oidc.Identifier, wrap func(http.Handler) http.Handler,
) {
	door := signin.New(signin.Config{
		Authenticator: g, Logger: logger, Issuers: issuers,
		Refuse: func(w http.ResponseWriter, r *http.Request, err error, back string) {
			site().RefuseSignIn(w, r, err, back)
		},
	})
	for _, pattern := range signin.Patterns() {
		mux.Handle(pattern, g.Pages(wrap(door)))
	}
	mux.Handle("/", g.Pages(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site().ServeHTTP(w, r) }))))
}

// Labels are the paths of all of these, for the labels of metrics.
func Labels() []string {
	labels := signin.Patterns()
	for _, r := range web.Routes() {
		labels = append(labels, r.Label())
	}
	return labels
}

// Preview returns a previewer that checks the reader's permissions, and that agreed does not refuse decisions by rules
// that were not agreed on. environments are those that inner decides by.
func Preview(
	inner api.Previewer, agreed func(ctx context.Context) error, environments func(ctx context.Context) (policy.Environments, error),
) api.Previewer {
	return access.Preview(agreedPreview{inner, agreed}, environments)
}

// agreedPreview decides nothing by rules that were not agreed on.
type agreedPreview struct {
	api.Previewer
	check func(ctx context.Context) error
}

func (p agreedPreview) Preview(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	if err := p.check(ctx); err != nil {
		return api.Promotion{}, err
	}
	return p.Previewer.Preview(ctx, r)
}

func (p agreedPreview) PreviewRollback(ctx context.Context, r api.RollbackRequest) (api.Promotion, error) {
	if err := p.check(ctx); err != nil {
		return api.Promotion{}, err
	}
	return p.Previewer.PreviewRollback(ctx, r)
}

func (p agreedPreview) Standing(ctx context.Context, environment, model string) ([]api.Candidate, error) {
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	return p.Previewer.Standing(ctx, environment, model)
}

// readNode reads a node document, or the labels of a Kubernetes node.
func readNode(name string, data []byte) (artifact.Node, error) {
	if labels, err := node.ParseLabels(name, data); err == nil {
		return node.FromLabels(labels)
	}
	return node.Parse(name, data)
}
