package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// tokenRoutes are the operations on tokens, for administrators only. Clients send the hash of a
// new secret, never the secret.
func tokenRoutes() []route {
	const administer = registry.PermissionAdminister
	one := wire.TokensPath + "/{id}"
	return []route{
		{
			Route{http.MethodGet, wire.TokensPath, administer, false, "All tokens, including expired and revoked ones", paged()},
			server.tokens,
		},
		{
			Route{
				http.MethodPost,
				wire.TokensPath,
				administer,
				false,
				"Create a token; the request has the hash of its secret",
				nil,
			},
			server.addToken,
		},
		{Route{http.MethodGet, one, administer, false, "One token", nil}, server.token},
		{Route{http.MethodDelete, one, administer, false, "Revoke a token; it stays in the list", nil}, server.revokeToken},
	}
}

func (s server) tokens(r *request) (*response, error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	all, err := s.Tokens.ListTokens(r.Context())
	if err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearchFunc(all, after+"\x00",
		func(t registry.Token, id string) int { return strings.Compare(t.ID, id) })
	all, next := cut(all[first:], limit, func(t registry.Token) string { return t.ID })
	return page(r, all, next)
}

func (s server) token(r *request) (*response, error) {
	t, err := s.Tokens.FindToken(r.Context(), r.Name)
	if err != nil {
		return nil, err
	}
	return ok(t)
}

// addToken gives a repeated request the same response. The sender chose identifier and hash, so
// nothing is created twice.
func (s server) addToken(r *request) (*response, error) {
	var body wire.TokenRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	t, err := body.Token(s.Now().UTC().Truncate(time.Microsecond))
	if err != nil {
		return nil, err
	}
	err = s.Tokens.CreateToken(r.Context(), t)
	if registry.HasCode(err, registry.CodeConflict) {
		if have, found := s.Tokens.FindToken(r.Context(), t.ID); found == nil && have.Hash == t.Hash && have.Name == t.Name &&
			have.Revoked.IsZero() {
			t, err = have, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return answer(http.StatusCreated, t)
}

func (s server) revokeToken(r *request) (*response, error) {
	if err := s.Tokens.RevokeToken(r.Context(), r.Name, s.Now()); err != nil {
		return nil, err
	}
	return done()
}
