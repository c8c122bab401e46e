package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/gate"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/signer"
)

// entrance is where a service is reached, and by what.
type entrance struct {
	listen       string
	url          string // as clients know it; empty: that of the listener
	auth         bool   // also on loopback
	insecureHTTP bool
	tlsCert      string
	tlsKey       string
}

// check refuses an entrance through which tokens would be seen on their way. Errors:
// CodeInvalid.
func (e *entrance) check() error {
	_, port, err := net.SplitHostPort(e.listen)
	if n, notNumber := strconv.Atoi(port); err != nil || notNumber == nil && (n < 0 || n > 65535) {
		return registry.Errorf(registry.CodeInvalid, "--listen %q: want HOST:PORT, for example 127.0.0.1:5080", e.listen)
	}
	if (e.tlsCert == "") != (e.tlsKey == "") {
		return registry.Errorf(registry.CodeInvalid, "--tls-cert and --tls-key: want both, or none")
	}
	if e.url != "" {
		e.url = strings.TrimSuffix(e.url, "/")
		if _, err := client.ParseURL(e.url); err != nil {
			return registry.Errorf(registry.CodeInvalid, "--url: %w", err)
		}
	}
	switch {
	case isLoopback(e.listen) || e.tlsCert != "":
		return nil
	case !e.insecureHTTP:
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "--listen %s: others reach this address, and would see tokens on their way", e.listen),
			"--tls-cert FILE --tls-key FILE; behind a proxy that speaks TLS --insecure-http --url https://HOST; for this machine alone 127.0.0.1")
	case e.url == "":
		return registry.Errorf(registry.CodeInvalid, "--insecure-http: --url is missing: clients are told to send their tokens there")
	}
	return nil
}

// address is the URL of the service once it listens.
func (e *entrance) address(listener net.Listener) string {
	switch {
	case e.url != "":
		return e.url
	case e.tlsCert != "":
		return "https://" + listener.Addr().String()
	default:
		return "http://" + listener.Addr().String()
	}
}

// principalName is whose an upload is.
func principalName(ctx context.Context) string {
	p, _ := registry.PrincipalOf(ctx)
	return p.Name
}

// strictTransport reports whether clients reach the service by TLS.
func (e *entrance) strictTransport() bool {
	return e.tlsCert != "" || strings.HasPrefix(e.url, "https://")
}

// door lets callers in. The zero door lets everybody in who can reach it.
type door struct {
	gate   *gate.Gate
	reload func(context.Context) // reads again who is trusted
}

// accessFile says in the data directory which issuers are trusted, and who of theirs may
// do what.
const accessFile = "access.yaml"

// door is open only where nobody but this machine can come in, and where nobody ever said
// who may: a token that expired or was revoked keeps it closed.
func (a *app) door(ctx context.Context, c serveConfig, i *instance, logger *slog.Logger) (door, error) {
	tokens, err := i.local.db.ListTokens(ctx)
	if err != nil {
		return door{}, err
	}
	trusted, n, err := newIssuers(filepath.Join(a.data, accessFile), logger)
	if err != nil {
		return door{}, err
	}
	if isLoopback(c.listen) && !c.auth && len(tokens) == 0 && n == 0 {
		logger.InfoContext(ctx, "everybody on this machine may do everything here, until there is a token", "hint", "mlpromote token create NAME --data "+a.data)
		return door{reload: func(context.Context) {}}, nil
	}
	a.sayHowToGetIn(c.entrance, tokens, n)
	g, err := gate.New(ctx, gate.Config{
		Tokens: i.local.db, Secrets: i.local.db, Identify: trusted.Identify, URL: c.url, Failures: c.failures(), Logger: logger,
	})
	return door{g, trusted.Reload}, err
}

func (a *app) sayHowToGetIn(e entrance, tokens []registry.Token, issuers int) {
	usable := 0
	for _, t := range tokens {
		if access.Usable(t, now()) == nil {
			usable++
		}
	}
	a.ui.note("who comes in is asked for a token; %d are in use, and %d issuers are trusted", usable, issuers)
	if usable+issuers == 0 {
		a.ui.note("the first one: mlpromote token create admin --allow administer --data %s", a.data)
	}
	if e.insecureHTTP && !isLoopback(e.listen) {
		a.ui.note("WARNING: --insecure-http: tokens cross the network to %s as they are; everybody on the way can take them and act by them", e.listen)
	}
}

// signServed is a keyring of a service: that it does not sign is no mistake of whoever
// asked for something, and where its keys are is not told.
func signServed(keys *signer.Keyring) registry.SignEvidence {
	return func(ctx context.Context, role registry.Role, statement []byte) ([]byte, error) {
		bundle, err := keys.Sign(ctx, role, statement)
		if err == nil || ctx.Err() != nil {
			return bundle, err
		}
		return nil, registry.ForClients(
			registry.Errorf(registry.CodeUnavailable, "%s", err.Error()),
			"the service cannot sign as %s: its operator finds the reason in its log", role)
	}
}

// everybody is who comes in where nobody is asked.
func everybody() registry.Principal {
	return registry.Principal{Name: "anonymous", Grants: []registry.Grant{
		{Permissions: []registry.Permission{registry.PermissionAdminister}, Environment: "**", Model: "**"}}}
}

// api is the REST API behind the door.
func (d door) api(next http.Handler) http.Handler {
	if d.gate != nil {
		return d.gate.API(next)
	}
	return open(next)
}

// registry is the OCI endpoint behind the door.
func (d door) registry(next http.Handler) http.Handler {
	if d.gate != nil {
		return d.gate.Registry(next)
	}
	return open(next)
}

// metrics are for whoever is let in at all: they name no model.
func (d door) metrics(next http.Handler) http.Handler {
	return d.api(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.AllowRoute(r.Context(), registry.PermissionRead, "", ""); err != nil {
			http.Error(w, err.Error(), registry.CodeOf(err).HTTPStatus())
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// open lets everybody in.
func open(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(registry.WithPrincipal(r.Context(), everybody())))
	})
}

// outside is before everything: where nobody is asked who he is, only names of this
// machine are answered to.
func (d door) outside(next http.Handler) http.Handler {
	if d.gate != nil {
		return next
	}
	return localOnly(next)
}

// challenge asks OCI clients for the token that they lack.
func (d door) challenge(r *http.Request, a distribution.Access) string {
	if d.gate == nil {
		return `Basic realm="mlpromote"`
	}
	return d.gate.Challenge(r, a.Repository, permissionFor(a.Action))
}

// permissionFor is what an action on a repository takes. One that is not known takes what
// nobody is ever given.
func permissionFor(action distribution.Action) registry.Permission {
	switch action {
	case distribution.Pull:
		return registry.PermissionRead
	case distribution.Push:
		return registry.PermissionPush
	case distribution.Delete:
		return registry.PermissionAdminister
	}
	return ""
}

// authorize is the rule of the OCI endpoint.
func authorize(environments registry.Environments) func(context.Context, distribution.Access) error {
	rule := access.Repositories{Environments: environments}
	return func(ctx context.Context, a distribution.Access) error {
		return rule.Authorize(ctx, a.Repository, permissionFor(a.Action))
	}
}

// secure adds the headers that keep a browser from making more of an answer than it is.
func secure(next http.Handler, strictTransport bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		if strictTransport {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
