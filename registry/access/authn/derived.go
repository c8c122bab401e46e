package authn

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Service is the audience of the tokens for OCI clients, which request them by this name.
const Service = "mlpromote"

// Lifetime is the lifetime of a token for an OCI client. If it was made for one of our tokens,
// it also ends with that token, at once if that is revoked.
const Lifetime = 5 * time.Minute

// skew is the maximum difference between the clocks of replicas.
const skew = 30 * time.Second

// algorithm is symmetric because only this service signs and verifies these tokens.
const algorithm = jose.HS256

// claims are the claims of a token for an OCI client.
type claims struct {
	jwt.Claims
	Token  string          `json:"tid,omitempty"`   // ID of the token that it was made for
	Rules  string          `json:"rules,omitempty"` // the rules that applied when the issuer's token was accepted
	Grants []storage.Grant `json:"grants,omitempty"`
	Asked  []storage.Grant `json:"asked,omitempty"`
}

// derive makes a token for an OCI client. It grants what the principal may do of what was
// requested.
func (g *Authenticator) derive(who identity, asked []storage.Grant) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: g.key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	now := g.Now()
	return jwt.Signed(signer).Claims(claims{
		Claims: jwt.Claims{
			Issuer: Service, Subject: who.principal.Name, Audience: jwt.Audience{Service},
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(Lifetime)),
		},
		Token: who.token, Rules: who.rules, Grants: narrow(who.principal, asked), Asked: asked,
	}).Serialize()
}

// ours parses a credential that looks like a token made by derive.
func ours(credential string) (*jwt.JSONWebToken, bool) {
	parsed, err := jwt.ParseSigned(credential, []jose.SignatureAlgorithm{algorithm})
	return parsed, err == nil
}

// verify returns the identity of a token that derive made. Errors: CodeUnauthenticated.
func (g *Authenticator) verify(ctx context.Context, token *jwt.JSONWebToken) (identity, error) {
	var c claims
	if err := token.Claims(g.key, &c); err != nil {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated, "this service did not issue the token")
	}
	expected := jwt.Expected{Issuer: Service, AnyAudience: jwt.Audience{Service}, Time: g.Now()}
	if err := c.ValidateWithLeeway(expected, skew); err != nil || c.Expiry == nil {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated,
			"the token is outside its lifetime of %s: request another", Lifetime)
	}
	if c.Rules != "" && c.Rules != g.Rules() {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated,
			"the access rules changed after this token was issued: request another")
	}
	if c.Token != "" {
		t, err := g.Tokens.FindToken(ctx, c.Token)
		if err == nil {
			err = access.Usable(t, g.Now())
		}
		if err == nil {
			g.used(ctx, t, g.Now())
		}
		if registry.HasCode(err, registry.CodeNotFound) {
			err = registry.Errorf(registry.CodeUnauthenticated, "the token was made for a token that no longer exists")
		}
		if err != nil {
			return identity{}, err
		}
	}
	return identity{
		principal: storage.Principal{
			Name:   c.Subject,
			Grants: c.Grants,
		}, token: c.Token, rules: c.Rules, asked: c.Asked, derived: true,
	}, nil
}
