package gate

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
)

// Service is the audience of the tokens that OCI clients get: they ask for it by this name.
const Service = "mlpromote"

// Lifetime is how long a token of an OCI client lets it in. One that was made for a token
// of ours ends with that one, at once when it is revoked.
const Lifetime = 5 * time.Minute

// skew is how far the clocks of replicas may be apart.
const skew = 30 * time.Second

// algorithm signs for ourselves alone, so one key that signs and verifies is enough. No
// other issuer is believed with it.
const algorithm = jose.HS256

// claims are those of a token that an OCI client gets.
type claims struct {
	jwt.Claims
	Token  string           `json:"tid,omitempty"`   // ID of the token that it was made for
	Rules  string           `json:"rules,omitempty"` // the rules that applied when the issuer's token was accepted
	Grants []registry.Grant `json:"grants,omitempty"`
	Asked  []registry.Grant `json:"asked,omitempty"`
}

// derive makes a token for an OCI client, with what its principal is allowed of what was
// asked for.
func (g *Gate) derive(who identity, asked []registry.Grant) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: g.key}, (&jose.SignerOptions{}).WithType("JWT"))
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

// ours reads a credential that is meant as a token which derive made.
func ours(credential string) (*jwt.JSONWebToken, bool) {
	parsed, err := jwt.ParseSigned(credential, []jose.SignatureAlgorithm{algorithm})
	return parsed, err == nil
}

// verify gives who is let in by a token that derive made. Errors: CodeUnauthenticated.
func (g *Gate) verify(ctx context.Context, token *jwt.JSONWebToken) (identity, error) {
	var c claims
	if err := token.Claims(g.key, &c); err != nil {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated, "the token that was sent is not one of this service's")
	}
	expected := jwt.Expected{Issuer: Service, AnyAudience: jwt.Audience{Service}, Time: g.Now()}
	if err := c.ValidateWithLeeway(expected, skew); err != nil || c.Expiry == nil {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated, "the token that was sent is for %s at most, and that is over: ask for another", Lifetime)
	}
	if c.Rules != "" && c.Rules != g.Rules() {
		return identity{}, registry.Errorf(registry.CodeUnauthenticated, "the access rules changed after this token was issued: request another")
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
			err = registry.Errorf(registry.CodeUnauthenticated, "the token that was sent was made for one that is not there any more")
		}
		if err != nil {
			return identity{}, err
		}
	}
	return identity{
		principal: registry.Principal{Name: c.Subject, Grants: c.Grants}, token: c.Token, rules: c.Rules, asked: c.Asked, derived: true,
	}, nil
}
