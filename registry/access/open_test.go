package access_test

import (
	"context"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

func wantOpen(t *testing.T, o *access.Open, when string, want bool) {
	t.Helper()
	if got, err := o.ToAll(t.Context()); got != want || err != nil {
		t.Errorf("%s: open %t, error %v, want %t", when, got, err, want)
	}
}

// A token closes a service for good, whichever process makes it.
func TestOpenUntilThereIsAToken(t *testing.T) {
	t.Parallel()
	db := mem.New()
	o := access.NewOpen(db, func() bool { return false })
	wantOpen(t, o, "before there is any token", true)
	made := time.Now()
	grants := []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}
	token, _, err := access.Mint("ci", grants, made, made.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.CreateToken(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, o, "with a token", false)
	if err := db.RevokeToken(t.Context(), token.ID, made); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, o, "with a token that was revoked", false)
	wantOpen(t, access.NewOpen(db, func() bool { return false }), "after a restart", false)
}

// Issuers close a service too, also if they are removed again.
func TestOpenUntilThereAreIssuers(t *testing.T) {
	t.Parallel()
	configured := false
	o := access.NewOpen(mem.New(), func() bool { return configured })
	wantOpen(t, o, "without issuers", true)
	configured = true
	wantOpen(t, o, "with issuers", false)
	configured = false
	wantOpen(t, o, "after they were removed", false)
	wantOpen(t, nil, "a nil Open", false)
}

// noList is a database that does not answer.
type noList struct{ storage.Tokens }

func (noList) ListTokens(context.Context) ([]storage.Token, error) {
	return nil, registry.Errorf(registry.CodeUnavailable, "the database does not answer")
}

// A service that cannot tell whether there are tokens is not open.
func TestOpenIsNotKnown(t *testing.T) {
	t.Parallel()
	open, err := access.NewOpen(noList{}, func() bool { return false }).ToAll(t.Context())
	if open || registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("open %t, error %v, want closed and CodeUnavailable", open, err)
	}
}

func TestAnonymousMayDoEverything(t *testing.T) {
	t.Parallel()
	for _, permission := range storage.Permissions() {
		if p := access.Anonymous(); !p.May(permission, "prod", "vision/digits") || !p.May(permission, "", "") {
			t.Errorf("%s may not %s", p.Name, permission)
		}
	}
}

// An unknown action needs a permission that no principal has, not even an administrator.
func TestUnknownActionIsRefused(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]storage.Permission{
		access.ActionPull: storage.PermissionRead, access.ActionPush: storage.PermissionPush, access.ActionDelete: storage.PermissionAdminister,
		"fly": "", "": "",
	} {
		if got := access.ActionPermission(action); got != want {
			t.Errorf("action %q needs %q, want %q", action, got, want)
		}
	}
	ctx := storage.WithPrincipal(t.Context(), access.Anonymous())
	if err := (access.Repositories{}).Authorize(ctx, "staging/x", access.ActionPermission("fly")); registry.CodeOf(err) != registry.CodeForbidden {
		t.Errorf("error %v, want CodeForbidden", err)
	}
}
