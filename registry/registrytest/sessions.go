package registrytest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestSessions is the contract of [storage.Sessions].
func TestSessions(t *testing.T, open func(t *testing.T) storage.Sessions) {
	for name, test := range map[string]func(*testing.T, storage.Sessions){
		"create and find":     testCreateSession,
		"end one":             testEndSession,
		"end all of an owner": testEndSessions,
		"expired":             testExpiredSessions,
		"too many":            testManySessions,
		"canceled":            testSessionsCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// session is a session at an issuer, with every field that one can have.
func session(id, owner string) storage.Session {
	return storage.Session{
		ID: id, Hash: sha256.Sum256([]byte(id)), Owner: owner, Issuer: "https://id.example.com", Claims: []byte(`{"sub":"7"}`),
		Created: begin(), Expires: begin().Add(time.Hour),
	}
}

func wantSession(t *testing.T, sessions storage.Sessions, want storage.Session) {
	t.Helper()
	got, err := sessions.FindSession(t.Context(), want.ID)
	must(t, err)
	want.Created, want.Expires = want.Created.UTC().Truncate(time.Microsecond), want.Expires.UTC().Truncate(time.Microsecond)
	wantEqual(t, got, want)
}

func wantNoSession(t *testing.T, sessions storage.Sessions, id string) {
	t.Helper()
	_, err := sessions.FindSession(t.Context(), id)
	wantCode(t, err, registry.CodeNotFound)
}

func testCreateSession(t *testing.T, sessions storage.Sessions) {
	wantNoSession(t, sessions, "a")
	atIssuer, byToken := session("a", "jane"), session("b", "ci")
	byToken.Issuer, byToken.Claims, byToken.Token = "", nil, "t1"
	must(t, sessions.CreateSession(t.Context(), atIssuer))
	must(t, sessions.CreateSession(t.Context(), byToken))
	wantCode(t, sessions.CreateSession(t.Context(), session("a", "mallory")), registry.CodeConflict)
	wantSession(t, sessions, atIssuer)
	wantSession(t, sessions, byToken)

	// What was handed out is the caller's: changing it changes nothing here.
	got, err := sessions.FindSession(t.Context(), "a")
	must(t, err)
	got.Claims[2] = 'X'
	wantSession(t, sessions, atIssuer)
}

func testEndSession(t *testing.T, sessions storage.Sessions) {
	must(t, sessions.CreateSession(t.Context(), session("a", "jane")))
	must(t, sessions.CreateSession(t.Context(), session("b", "jane")))
	wantSession(t, sessions, session("a", "jane"))
	for range 2 {
		must(t, sessions.EndSession(t.Context(), "a"))
		wantNoSession(t, sessions, "a")
	}
	wantSession(t, sessions, session("b", "jane"))
}

func testEndSessions(t *testing.T, sessions storage.Sessions) {
	for id, owner := range map[string]string{"a": "jane", "b": "jane", "c": "jane doe"} {
		must(t, sessions.CreateSession(t.Context(), session(id, owner)))
	}
	for _, want := range []int{2, 0} {
		got, err := sessions.EndSessions(t.Context(), "jane")
		must(t, err)
		wantEqual(t, got, want)
	}
	wantNoSession(t, sessions, "a")
	wantNoSession(t, sessions, "b")
	wantSession(t, sessions, session("c", "jane doe"))
}

// A session that expires as another begins is deleted, and one that expires later is not.
func testExpiredSessions(t *testing.T, sessions storage.Sessions) {
	short, long := session("short", "jane"), session("long", "joe")
	short.Expires, long.Expires = begin().Add(time.Minute), begin().Add(time.Minute+time.Millisecond)
	must(t, sessions.CreateSession(t.Context(), short))
	must(t, sessions.CreateSession(t.Context(), long))
	wantSession(t, sessions, short)
	later := session("later", "jim")
	later.Created = begin().Add(time.Minute)
	must(t, sessions.CreateSession(t.Context(), later))
	wantNoSession(t, sessions, "short")
	wantSession(t, sessions, long)
	wantSession(t, sessions, later)
}

func testManySessions(t *testing.T, sessions storage.Sessions) {
	must(t, sessions.CreateSession(t.Context(), session("other", "joe")))
	for i := range storage.MaxSessions + 2 {
		s := session(fmt.Sprintf("s%02d", i), "jane")
		s.Created = s.Created.Add(time.Duration(i) * time.Second)
		must(t, sessions.CreateSession(t.Context(), s))
	}
	wantNoSession(t, sessions, "s00")
	wantNoSession(t, sessions, "s01")
	_, err := sessions.FindSession(t.Context(), "s02")
	must(t, err)
	wantSession(t, sessions, session("other", "joe"))
	n, err := sessions.EndSessions(t.Context(), "jane")
	must(t, err)
	wantEqual(t, n, storage.MaxSessions)
}

func testSessionsCanceled(t *testing.T, sessions storage.Sessions) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, find := sessions.FindSession(ctx, "a")
	_, all := sessions.EndSessions(ctx, "jane")
	for what, err := range map[string]error{
		"create": sessions.CreateSession(ctx, session("a", "jane")), "find": find,
		"end": sessions.EndSession(ctx, "a"), "end all": all,
	} {
		if err == nil || registry.HasCode(err, registry.CodeNotFound) {
			t.Errorf("%s with a canceled context: %v", what, err)
		}
	}
	wantNoSession(t, sessions, "a")
}
