package serving

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// site protects the service from what browsers send to it. The certificate, if there is one,
// has more names: a browser does not send anything to a name that is not in it.
func (e *ListenConfig) site(c *host.Certificate, logger *slog.Logger) authn.OriginCheck {
	hosts := access.Hosts{Names: e.hostNames(), Addresses: !remote.IsLoopback(e.Listen)}
	if u, err := url.Parse(e.URL); err == nil && e.URL != "" {
		hosts.Names = append(hosts.Names, u.Hostname())
	}
	if name, _, err := net.SplitHostPort(e.Listen); err == nil && name != "" {
		hosts.Names = append(hosts.Names, name)
	}
	if c != nil {
		hosts.Also = c.Covers
	}
	return authn.OriginCheck{Hosts: hosts, URL: e.URL, Logger: logger}
}

// principalName is whose an upload is.
func principalName(ctx context.Context) string {
	p, _ := storage.PrincipalOf(ctx)
	return p.Name
}

// strictTransport reports whether clients reach the service by TLS.
func (e *ListenConfig) strictTransport() bool {
	return e.TLSCert != "" || strings.HasPrefix(e.URL, "https://")
}

// authenticator decides who is let in. Where others can reach the service, and with --auth,
// every caller needs a token; on a loopback address only once somebody has said who may come
// in.
func (sv *Service) authenticator(ctx context.Context) (*authn.Authenticator, error) {
	db, c := sv.Here.DB, sv.config
	settings := authn.Config{
		Tokens: db, Secrets: db, Sessions: db, Identify: sv.identify, ByClaims: sv.byClaims,
		Rules: sv.accessRules, URL: c.URL, Failures: c.Failures(), Now: clock.Now, Logger: sv.logger,
	}
	if remote.IsLoopback(c.Listen) && !c.Auth {
		settings.Open = access.NewOpen(db, authn.Shared(sv.accessConfigured))
	}
	open, err := settings.Open.ToAll(ctx)
	switch {
	case err != nil:
		return nil, err
	case open:
		sv.logger.InfoContext(ctx, "everybody on this machine may do everything here, until there is a token",
			"hint", "mlpromote token create NAME --data "+sv.at.Data)
	default:
		settings.Open = nil
		if err := sv.sayHowToGetIn(ctx, c.ListenConfig, db, len(sv.keeper.InForce().own.Access.Issuers)); err != nil {
			return nil, err
		}
	}
	return authn.New(ctx, settings)
}

// sayHowToGetIn tells the operator what lets callers in, and how to make a first token.
func (sv *Service) sayHowToGetIn(ctx context.Context, e ListenConfig, kept storage.Tokens, issuers int) error {
	tokens, err := kept.ListTokens(ctx)
	if err != nil {
		return err
	}
	usable := 0
	for _, t := range tokens {
		if access.Usable(t, clock.Now()) == nil {
			usable++
		}
	}
	sv.at.Note("callers need a token; in use: %s; trusted: %s", registry.Count(usable, "token"), registry.Count(issuers, "issuer"))
	if usable+issuers == 0 {
		sv.at.Note("the first one: mlpromote token create admin --allow administer --data %s", sv.at.Data)
	}
	if e.InsecureHTTP && !remote.IsLoopback(e.Listen) {
		sv.at.Note("WARNING: --insecure-http: tokens cross the network to %s as they are; everybody on the way can take them and act by them", e.Listen)
	}
	return nil
}

// readers lets in whoever may read anything. Metrics name no model.
func readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.AllowRoute(r.Context(), storage.PermissionRead, "", ""); err != nil {
			http.Error(w, err.Error(), registry.CodeOf(err).HTTPStatus())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Challenge asks OCI clients for the token that they lack.
func Challenge(g *authn.Authenticator) func(*http.Request, distribution.Access) string {
	return func(r *http.Request, a distribution.Access) string {
		return g.Challenge(r, a.Repository, access.ActionPermission(string(a.Action)))
	}
}

// Authorize is the rule of the OCI endpoint.
func Authorize(environments policy.Environments) func(context.Context, distribution.Access) error {
	rule := access.Repositories{Environments: environments}
	return func(ctx context.Context, a distribution.Access) error {
		return rule.Authorize(ctx, a.Repository, access.ActionPermission(string(a.Action)))
	}
}
