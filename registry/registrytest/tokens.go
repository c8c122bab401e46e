package registrytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestTokens is the contract of [storage.Tokens].
func TestTokens(t *testing.T, open func(t *testing.T) storage.Tokens) {
	for name, test := range map[string]func(*testing.T, storage.Tokens){
		"create and find": testCreateToken,
		"list":            testListTokens,
		"conflict":        testTokenConflict,
		"revoke":          testRevokeToken,
		"use":             testUseToken,
		"not found":       testNoToken,
		"one name":        testTokenRace,
		"canceled":        testTokensCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// token is a token with every field that a new one has.
func token(id, name string) storage.Token {
	return storage.Token{
		ID: id, Name: name, Hash: sha256.Sum256([]byte(id)), Created: begin(), Expires: begin().Add(time.Hour),
		Grants: []storage.Grant{
			{Permissions: []storage.Permission{storage.PermissionRead, storage.PermissionPush}, Environment: "staging", Model: "vision/**"},
			{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "text/*"},
		},
	}
}

// kept is a token as it comes back: in UTC to the microsecond.
func kept(t storage.Token) storage.Token {
	for _, at := range []*time.Time{&t.Created, &t.Expires, &t.Revoked, &t.LastUsed} {
		if !at.IsZero() {
			*at = at.UTC().Truncate(time.Microsecond)
		}
	}
	return t
}

func wantToken(t *testing.T, tokens storage.Tokens, want storage.Token) {
	t.Helper()
	got, err := tokens.FindToken(t.Context(), want.ID)
	must(t, err)
	wantEqual(t, got, kept(want))
}

func testCreateToken(t *testing.T, tokens storage.Tokens) {
	full, bare := token("a1", "ci"), storage.Token{ID: "b2", Name: "bare", Created: begin()}
	must(t, tokens.CreateToken(t.Context(), full))
	must(t, tokens.CreateToken(t.Context(), bare))
	wantToken(t, tokens, full)
	wantToken(t, tokens, bare)

	// What was handed out is the caller's: changing it changes nothing here.
	mine := token("c3", "mine")
	must(t, tokens.CreateToken(t.Context(), mine))
	mine.Grants[0].Permissions[0] = storage.PermissionAdminister
	got, err := tokens.FindToken(t.Context(), "c3")
	must(t, err)
	got.Grants[0].Permissions[0] = storage.PermissionAdminister
	got.Grants[0].Environment = "**"
	wantToken(t, tokens, token("c3", "mine"))
}

func testListTokens(t *testing.T, tokens storage.Tokens) {
	none, err := tokens.ListTokens(t.Context())
	must(t, err)
	wantEqual(t, len(none), 0)
	var want []storage.Token
	for _, id := range []string{"c", "a", "b"} {
		must(t, tokens.CreateToken(t.Context(), token(id, "name-"+id)))
	}
	must(t, tokens.RevokeToken(t.Context(), "b", begin()))
	for _, id := range []string{"a", "b", "c"} {
		listed := token(id, "name-"+id)
		if id == "b" {
			listed.Revoked = begin()
		}
		want = append(want, kept(listed))
	}
	got, err := tokens.ListTokens(t.Context())
	must(t, err)
	wantEqual(t, got, want)
}

func testTokenConflict(t *testing.T, tokens storage.Tokens) {
	must(t, tokens.CreateToken(t.Context(), token("a", "ci")))
	wantCode(t, tokens.CreateToken(t.Context(), token("b", "ci")), registry.CodeConflict)
	wantCode(t, tokens.CreateToken(t.Context(), token("a", "other")), registry.CodeConflict)
	wantToken(t, tokens, token("a", "ci"))
	_, err := tokens.FindToken(t.Context(), "b")
	wantCode(t, err, registry.CodeNotFound)

	// The name is free again once its token is revoked; the ID never is.
	must(t, tokens.RevokeToken(t.Context(), "a", begin()))
	must(t, tokens.CreateToken(t.Context(), token("b", "ci")))
	wantCode(t, tokens.CreateToken(t.Context(), token("a", "third")), registry.CodeConflict)
	wantCode(t, tokens.CreateToken(t.Context(), token("c", "ci")), registry.CodeConflict)
}

func testRevokeToken(t *testing.T, tokens storage.Tokens) {
	revoked, other := token("a", "ci"), token("b", "other")
	must(t, tokens.CreateToken(t.Context(), revoked))
	must(t, tokens.CreateToken(t.Context(), other))
	revoked.Revoked = begin().Add(time.Minute)
	must(t, tokens.RevokeToken(t.Context(), "a", revoked.Revoked))
	wantToken(t, tokens, revoked)
	must(t, tokens.RevokeToken(t.Context(), "a", begin().Add(time.Hour)))
	wantToken(t, tokens, revoked)
	wantToken(t, tokens, other)
}

func testUseToken(t *testing.T, tokens storage.Tokens) {
	used, other := token("a", "ci"), token("b", "other")
	must(t, tokens.CreateToken(t.Context(), used))
	must(t, tokens.CreateToken(t.Context(), other))
	for _, after := range []time.Duration{time.Minute, time.Hour, time.Second} { // replicas come in any order
		must(t, tokens.UseToken(t.Context(), "a", begin().Add(after)))
		used.LastUsed = begin().Add(max(after, used.LastUsed.Sub(begin())))
		wantToken(t, tokens, used)
	}
	wantToken(t, tokens, other)
}

func testNoToken(t *testing.T, tokens storage.Tokens) {
	must(t, tokens.CreateToken(t.Context(), token("a", "ci")))
	for _, id := range []string{"", "b", "A", "ci", "a ", "%"} {
		_, err := tokens.FindToken(t.Context(), id)
		wantCode(t, err, registry.CodeNotFound)
		wantCode(t, tokens.RevokeToken(t.Context(), id, begin()), registry.CodeNotFound)
		wantCode(t, tokens.UseToken(t.Context(), id, begin()), registry.CodeNotFound)
	}
	wantToken(t, tokens, token("a", "ci"))
}

// testTokenRace makes tokens of one name at once.
func testTokenRace(t *testing.T, tokens storage.Tokens) {
	const n = 8
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = tokens.CreateToken(t.Context(), token(fmt.Sprint(i), "ci")) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			wantCode(t, err, registry.CodeConflict)
		}
	}
	wantEqual(t, made, 1)
}

func testTokensCanceled(t *testing.T, tokens storage.Tokens) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, find := tokens.FindToken(ctx, "a")
	_, list := tokens.ListTokens(ctx)
	for what, err := range map[string]error{
		"create": tokens.CreateToken(ctx, token("a", "ci")), "find": find, "list": list,
		"revoke": tokens.RevokeToken(ctx, "a", begin()), "use": tokens.UseToken(ctx, "a", begin()),
	} {
		if err == nil || registry.HasCode(err, registry.CodeNotFound) {
			t.Errorf("%s with a canceled context: %v", what, err)
		}
	}
	_, err := tokens.FindToken(t.Context(), "a")
	wantCode(t, err, registry.CodeNotFound)
}

// TestSecrets is the contract of [storage.Secrets].
func TestSecrets(t *testing.T, open func(t *testing.T) storage.Secrets) {
	t.Run("the first decides", func(t *testing.T) {
		t.Parallel()
		secrets := open(t)
		_, err := secrets.Secret(t.Context(), "key", nil)
		wantCode(t, err, registry.CodeInvalid)
		fresh := []byte{0, 1, 255}
		for _, offered := range [][]byte{fresh, []byte("later")} {
			got, err := secrets.Secret(t.Context(), "key", offered)
			must(t, err)
			wantEqual(t, got, []byte{0, 1, 255})
			got[0], fresh[0] = 9, 9
		}
		other, err := secrets.Secret(t.Context(), "other key", []byte("other"))
		must(t, err)
		wantEqual(t, other, []byte("other"))
	})
	t.Run("all get the same", func(t *testing.T) {
		t.Parallel()
		secrets := open(t)
		got := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = secrets.Secret(t.Context(), "key", []byte{byte(i)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, g := range got {
			if len(g) != 1 || !bytes.Equal(g, got[0]) {
				t.Errorf("replicas have %v", got)
			}
		}
	})
}
