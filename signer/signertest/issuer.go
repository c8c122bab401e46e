package signertest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is the issuer of the authority's tokens over HTTP, like GitHub Actions' issuer: it publishes its keys, and
// returns a token with its claims to a job that shows the secret, at /token?audience=A. given is called with each of
// them and its audience.
func (a *Authority) Issuer(t testing.TB, secret string, claims func() Claims, given func(audience, token string)) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, document any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		url := "http://" + r.Host
		answer(w, map[string]any{"issuer": url, "jwks_uri": url + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: a.tokens.Public(), Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "no job", http.StatusForbidden)
			return
		}
		c := claims()
		c.Issuer, c.Audience = "http://"+r.Host, r.URL.Query().Get("audience")
		token := a.Token(t, c)
		given(r.URL.Query().Get("audience"), token)
		answer(w, map[string]any{"count": 1, "value": token})
	})
	return mux
}
