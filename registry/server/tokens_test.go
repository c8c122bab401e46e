package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/storage"
)

const tokenBody = `{"id": "aaaabbbbccccdddd", "name": "ci", "hash": "sha256:` + tokenHash +
	`", "grants": [{"permissions": ["read"], "environment": "prod", "model": "**"}]}`

// tokenHash is that of the secret "x".
const tokenHash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

// The hash of a secret is all that a service is sent, and enough to let its bearer in.
func TestTokens(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	w := setup(t, func(c *server.Config) { c.Now = func() time.Time { return made } })
	for range 2 { // sent twice, it is done once
		got := w.post("/api/v1/tokens", tokenBody)
		var token storage.Token
		if err := json.Unmarshal(got.Body.Bytes(), &token); err != nil ||
			got.Code != http.StatusCreated || token.Name != "ci" || !token.Created.Equal(made) ||
			got.Header().Get("Location") != "/api/v1/tokens/aaaabbbbccccdddd" || strings.Contains(got.Body.String(), tokenHash) {
			t.Fatalf("made: %d %v %s", got.Code, got.Header(), got.Body)
		}
	}
	bearer, err := access.Redeem(t.Context(), w.config.Tokens, "mlp_aaaabbbbccccdddd_x", made)
	if err != nil || bearer.Name != "ci" || len(bearer.Grants) != 1 {
		t.Errorf("the bearer is %+v, %v", bearer, err)
	}
	for what, body := range map[string]string{
		"another secret": strings.Replace(tokenBody, tokenHash, strings.Repeat("1", 64), 1),
		"the name again": strings.Replace(tokenBody, "aaaabbbbccccdddd", "eeeeffffgggghhhh", 1),
	} {
		wantProblem(t, what, w.post("/api/v1/tokens", body), http.StatusConflict, registry.CodeConflict)
	}
	if got := w.do(http.MethodDelete, "/api/v1/tokens/aaaabbbbccccdddd", ""); got.Code != http.StatusNoContent {
		t.Errorf("revoked: %d %s", got.Code, got.Body)
	}
	if _, err := access.Redeem(t.Context(), w.config.Tokens, "mlp_aaaabbbbccccdddd_x", made); !registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("a token that was revoked: %v", err)
	}
	wantProblem(t, "made again, though revoked", w.post("/api/v1/tokens", tokenBody), http.StatusConflict, registry.CodeConflict)
	wantProblem(t, "revoke what is not there", w.do(http.MethodDelete, "/api/v1/tokens/zzzz", ""), http.StatusNotFound, registry.CodeNotFound)
	wantProblem(t, "read what is not there", w.do(http.MethodGet, "/api/v1/tokens/zzzz", ""), http.StatusNotFound, registry.CodeNotFound)
}

func TestTokensRefuse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for what, change := range map[string][2]string{
		"a secret":        {`"name": "ci"`, `"name": "ci", "secret": "x"`},
		"a plain hash":    {"sha256:", ""},
		"another hash":    {"sha256:" + tokenHash, "sha512:" + strings.Repeat("1", 128)},
		"half a hash":     {tokenHash, tokenHash[:32]},
		"no hash":         {`"hash"`, `"hush"`},
		"a zero hash":     {tokenHash, strings.Repeat("0", 64)},
		"a name":          {`"ci"`, `"CI"`},
		"an id":           {"aaaabbbbccccdddd", "a_b"},
		"a permission":    {`"read"`, `"fly"`},
		"a pattern":       {`"**"`, `"a**"`},
		"no environment":  {`"environment": "prod", `, ``},
		"nothing allowed": {`[{"permissions": ["read"], "environment": "prod", "model": "**"}]`, `[]`},
		"the past":        {`"name": "ci"`, `"name": "ci", "expires": "2020-01-01T00:00:00Z"`},
	} {
		body := strings.Replace(tokenBody, change[0], change[1], 1)
		if body == tokenBody {
			t.Fatalf("%s changes nothing", what)
		}
		wantProblem(t, what, w.post("/api/v1/tokens", body), http.StatusBadRequest, registry.CodeInvalid)
	}
	if all, err := w.config.Tokens.ListTokens(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("made are %v, %v", all, err)
	}
}

func TestTokensInPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ids := []string{"aaaabbbbccccddd2", "aaaabbbbccccddd3", "aaaabbbbccccddd4"}
	for n, id := range ids {
		body := strings.Replace(strings.Replace(tokenBody, "aaaabbbbccccdddd", id, 1), `"ci"`, `"ci`+ids[n][15:]+`"`, 1)
		if got := w.post("/api/v1/tokens", body); got.Code != http.StatusCreated {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	var seen []string
	for next := "/api/v1/tokens?limit=1"; next != ""; {
		got := w.do(http.MethodGet, next, "")
		var page []storage.Token
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page) != 1 || len(seen) > 3 {
			t.Fatalf("%s: %d %s", next, got.Code, got.Body)
		}
		seen = append(seen, page[0].ID)
		next, _, _ = strings.Cut(strings.TrimPrefix(got.Header().Get("Link"), "<"), ">")
	}
	if strings.Join(seen, " ") != strings.Join(ids, " ") {
		t.Errorf("pages have %v, want %v", seen, ids)
	}
}
