package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func listTokens(s server, r *request) (*response, error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	all, err := s.Tokens.ListTokens(r.Context())
	if err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearchFunc(all, after+"\x00",
		func(t storage.Token, id string) int { return strings.Compare(t.ID, id) })
	all, next := cut(all[first:], limit, func(t storage.Token) string { return t.ID })
	return page(r, all, next)
}

func getToken(s server, r *request) (*response, error) {
	t, err := s.Tokens.FindToken(r.Context(), r.Name)
	if err != nil {
		return nil, err
	}
	return ok(t)
}

// addToken gives a repeated request the same response. The sender chose identifier and hash, so
// nothing is created twice.
func addToken(s server, r *request) (*response, error) {
	var body rest.TokenRequest
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

func revokeToken(s server, r *request) (*response, error) {
	if err := s.Tokens.RevokeToken(r.Context(), r.Name, s.Now()); err != nil {
		return nil, err
	}
	return done()
}
