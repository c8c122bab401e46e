package access_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func readAll() []storage.Grant {
	return []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}
}

// mint makes a token that expires an hour after noon and keeps it.
func mint(t *testing.T, tokens storage.Tokens, name string) (storage.Token, string) {
	t.Helper()
	token, text, err := access.Mint(name, readAll(), noon, noon.Add(time.Hour))
	if err == nil {
		err = tokens.CreateToken(t.Context(), token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return token, text
}

func TestMintAndRedeem(t *testing.T) {
	t.Parallel()
	tokens := mem.New()
	token, text := mint(t, tokens, "ci")
	other, _ := mint(t, tokens, "other")
	if !regexp.MustCompile(`^mlp_[a-z2-7]{16}_[a-z2-7]{52}$`).MatchString(text) ||
		!access.IsToken(text) || token.ID == other.ID || token.Hash == other.Hash {
		t.Errorf("made %q with the ID %s; another has the ID %s", text, token.ID, other.ID)
	}
	got, err := access.Redeem(t.Context(), tokens, text, noon.Add(time.Minute))
	if err != nil || got.Name != "ci" || access.Bearer(got).Name != "token:ci" || !access.Bearer(got).May(storage.PermissionRead, "prod", "x") {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestRedeemRefuses(t *testing.T) {
	t.Parallel()
	tokens := mem.New()
	token, text := mint(t, tokens, "ci")
	_, other := mint(t, tokens, "other")
	revoked, gone := mint(t, tokens, "gone")
	if err := tokens.RevokeToken(t.Context(), revoked.ID, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	secret := text[strings.LastIndexByte(text, '_')+1:]
	for name, c := range map[string]struct {
		text string
		now  time.Time
		says string
	}{
		"expired":             {text, noon.Add(time.Hour), "token ci expired on 2026-11-21 13:00:00"},
		"revoked":             {gone, noon.Add(2 * time.Minute), "token gone was revoked on 2026-11-21 12:01:00"},
		"revoked and expired": {gone, noon.Add(2 * time.Hour), "revoked"},
		"secret of another":   {"mlp_" + token.ID + "_" + other[len(other)-len(secret):], noon, "did not issue the token"},
		"unknown":             {"mlp_aaaaaaaaaaaaaaaa_" + secret, noon, "did not issue the token"},
		"shorter":             {text[:len(text)-1], noon, "did not issue the token"},
		"longer":              {text + "a", noon, "did not issue the token"},
		"upper case":          {strings.ToUpper(text), noon, "did not issue the token"},
		"no secret":           {"mlp_" + token.ID + "_", noon, "did not issue the token"},
		"hash for the secret": {"mlp_" + token.ID + "_" + string(token.Hash[:]), noon, "did not issue the token"},
		"only the ID":         {"mlp_" + token.ID, noon, "did not issue the token"},
		"without prefix":      {token.ID + "_" + secret, noon, "did not issue the token"},
		"nothing":             {"", noon, "did not issue the token"},
	} {
		_, err := access.Redeem(t.Context(), tokens, c.text, c.now)
		if registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), token.ID) {
			t.Errorf("%s: the error tells the token: %v", name, err)
		}
	}
	// What is no identifier at all is not looked for: a database might choke on it.
	for _, id := range []string{"a\x00b", "\xff", "'"} {
		if _, err := access.Redeem(t.Context(), nil, "mlp_"+id+"_"+secret, noon); registry.CodeOf(err) != registry.CodeUnauthenticated {
			t.Errorf("identifier %q: %v", id, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := access.Redeem(ctx, tokens, text, noon); err == nil || registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("a database that does not answer: %v, want another code than that of a bad token", err)
	}
}

func TestMintRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name    string
		grants  []storage.Grant
		expires time.Time
	}{
		"no name":      {"", readAll(), time.Time{}},
		"a blank":      {"my ci", readAll(), time.Time{}},
		"a line":       {"ci\nx", readAll(), time.Time{}},
		"upper case":   {"CI", readAll(), time.Time{}},
		"long":         {strings.Repeat("a", 65), readAll(), time.Time{}},
		"no grants":    {"ci", nil, time.Time{}},
		"broken grant": {"ci", []storage.Grant{{Environment: "prod", Model: "x"}}, time.Time{}},
		"expired":      {"ci", readAll(), noon},
	} {
		if token, text, err := access.Mint(c.name, c.grants, noon, c.expires); registry.CodeOf(err) != registry.CodeInvalid ||
			text != "" || token.ID != "" {
			t.Errorf("%s: %+v, %q, error %v, want CodeInvalid", name, token, text, err)
		}
	}
	for _, name := range []string{"a", "ci", "ci-2026.11_x", strings.Repeat("a", 64)} {
		if _, _, err := access.Mint(name, readAll(), noon, time.Time{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
