package authn

import (
	"context"
	"net/http"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
)

// openRules is the value of the rules during open access. No configuration has this value, so
// tokens that OCI clients got then are refused once open access has ended.
const openRules = "open"

// admit returns the sender of a request: anonymous during open access. Errors: as identify.
func (g *Authenticator) admit(r *http.Request) (identity, error) {
	open, err := g.Open.ToAll(r.Context())
	switch {
	case err != nil:
		return identity{}, err
	case open:
		return identity{principal: access.Anonymous(), rules: openRules}, nil
	case g.Open != nil:
		g.closing.Do(func() {
			g.Logger.WarnContext(r.Context(), "a first token or access.yaml exists: from now on every caller needs a token")
		})
	}
	return g.identify(r)
}

// identify authenticates the sender of a request. Errors: CodeUnauthenticated; tooMany, which
// is CodeUnavailable; others if the sender could not be checked.
func (g *Authenticator) identify(r *http.Request) (identity, error) {
	secret, err := credential(r.Header.Values("Authorization"))
	if err != nil {
		return identity{}, err
	}
	now := g.Now()
	if err := g.failures.allow(r, secret, now); err != nil {
		return identity{}, err
	}
	who, err := g.whose(r.Context(), secret, now)
	g.failures.tell(r, secret, err, now)
	return who, err
}

// whose returns the identity for a credential. Errors: as identify.
func (g *Authenticator) whose(ctx context.Context, secret string, now time.Time) (identity, error) {
	if access.IsToken(secret) {
		t, err := access.Redeem(ctx, g.Tokens, secret, now)
		if err == nil {
			g.used(ctx, t, now)
		}
		return identity{principal: access.Bearer(t), token: t.ID}, err
	}
	if token, ok := ours(secret); ok {
		return g.verify(ctx, token)
	}
	if strings.Count(secret, ".") != 2 {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated,
			"the credential is not a token: want mlp_..., or a JWT of an issuer that this service trusts")
	}
	rules := g.Rules() // read first: if they change meanwhile, the token is refused later
	p, err := g.Identify(ctx, secret)
	return identity{principal: p, rules: rules}, err
}
