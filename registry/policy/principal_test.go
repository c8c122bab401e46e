package policy_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestPrincipalMay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		grant              storage.Grant
		permission         storage.Permission
		environment, model string
		want               bool
	}{
		{"exactly that", grant("staging", "vision/digits", "push"), "push", "staging", "vision/digits", true},
		{"another permission", grant("staging", "vision/digits", "push"), "read", "staging", "vision/digits", false},
		{"another environment", grant("staging", "vision/digits", "push"), "push", "prod", "vision/digits", false},
		{"another model", grant("staging", "vision/digits", "push"), "push", "staging", "vision/letters", false},
		{"a part of a component", grant("*", "vision/di*", "read"), "read", "prod", "vision/digits", true},
		{"a star does not cross", grant("*", "*", "read"), "read", "prod", "vision/digits", false},
		{"all below", grant("*", "vision/**", "read"), "read", "prod", "vision/deep/digits", true},
		{"all below is not itself", grant("*", "vision/**", "read"), "read", "prod", "vision", false},
		{"all below is not beside", grant("*", "vision/**", "read"), "read", "prod", "visionary/digits", false},
		{"a pattern, and all below", grant("*", "v*/**", "read"), "read", "prod", "vision/digits", true},
		{"everything", grant("**", "**", "read"), "read", "prod", "vision/digits", true},
		{"what belongs to no model", grant("**", "**", "read"), "read", "", "", true},
		{"what belongs to no model, for some", grant("*", "*", "read"), "read", "", "", false},
		{"an administrator does all", grant("**", "**", "administer"), "promote", "prod", "vision/digits", true},
		{"an administrator of staging", grant("staging", "**", "administer"), "promote", "prod", "vision/digits", false},
		{"an unknown permission", grant("**", "**", "fly"), "fly", "prod", "vision/digits", false},
		{"an unknown permission of an administrator", grant("**", "**", "administer"), "fly", "prod", "vision/digits", false},
		{"no permission", grant("**", "**", "read"), "", "prod", "vision/digits", false},
		{"empty patterns", grant("", "", "read"), "read", "", "", false},
		{"a broken pattern", grant("[", "**", "read"), "read", "[", "vision/digits", false},
	} {
		p := storage.Principal{Name: "test", Grants: []storage.Grant{c.grant}}
		if got := p.May(c.permission, c.environment, c.model); got != c.want {
			t.Errorf("%s: %+v may %s %s in %s: %v", c.name, c.grant, c.permission, c.model, c.environment, got)
		}
	}
	if (storage.Principal{}).May(storage.PermissionRead, "prod", "vision/digits") {
		t.Error("nobody may read")
	}
}

func TestPrincipalMayAnywhere(t *testing.T) {
	t.Parallel()
	p := storage.Principal{Grants: []storage.Grant{grant("staging", "vision/*", "push")}}
	if !p.MayAnywhere("push") || p.MayAnywhere("read") || (storage.Principal{}).MayAnywhere("push") {
		t.Error("want push, and nothing else")
	}
}

func TestGrantValidate(t *testing.T) {
	t.Parallel()
	for _, good := range []storage.Grant{grant("staging", "vision/**", "push"), grant("**", "**", "read", "administer"), grant("*", "v*/x", "read")} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []storage.Grant{{}, grant("staging", "x"), grant("", "x", "read"), grant("x", "", "read"),
		grant("[", "x", "read"), grant("**/x", "x", "read"), grant("x", "x", "fly"), grant("x", "a**", "read")} {
		if err := bad.Validate(); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%+v: %v, want CodeInvalid", bad, err)
		}
	}
}

func TestPrincipalOf(t *testing.T) {
	t.Parallel()
	if p, ok := storage.PrincipalOf(t.Context()); ok || p.Name != "" {
		t.Errorf("there is %v", p)
	}
	ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:ci"})
	if p, ok := storage.PrincipalOf(ctx); !ok || p.Name != "token:ci" {
		t.Errorf("got %v", p)
	}
}

func grant(environment, model string, permissions ...storage.Permission) storage.Grant {
	return storage.Grant{Environment: environment, Model: model, Permissions: permissions}
}
