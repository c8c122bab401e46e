package access_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestRepositories(t *testing.T) {
	t.Parallel()
	const (
		read       = storage.PermissionRead
		push       = storage.PermissionPush
		administer = storage.PermissionAdminister
	)
	r := access.Repositories{Environments: registrytest.Chain()}
	for _, c := range []struct {
		has                storage.Permission
		environment, model string // of the grant
		wants              storage.Permission
		repository         string
		says               string // empty: it is allowed
	}{
		{read, "prod", "vision/*", read, "prod/vision/digits", ""},
		{read, "prod", "vision/*", read, "staging/vision/digits", "may not read vision/digits in staging"},
		{read, "prod", "vision/*", read, "prod/text/mood", "may not read"},
		{read, "prod", "vision/*", read, "prod", "want ENVIRONMENT/MODEL"},
		{administer, "**", "**", read, "prod", "want ENVIRONMENT/MODEL"},
		{administer, "**", "**", push, "staging", "want ENVIRONMENT/MODEL"},
		{read, "**", "**", read, "nowhere/vision/digits", ""}, // it is not found
		{read, "prod", "vision/*", read, "", ""},
		{push, "prod", "text/*", read, "", ""},
		{read, "staging", "vision/digits", read, "staging/vision/digits/sources", "may not read vision/digits/sources"},
		{read, "staging", "vision/**", read, "staging/vision/digits/sources", ""},
		{push, "staging", "vision/*", push, "staging/vision/digits", ""},
		{push, "staging", "vision/*", read, "staging/vision/digits", "may not read"},
		{push, "staging", "vision/*", administer, "staging/vision/digits", "may not administer"},
		{read, "staging", "vision/*", push, "staging/vision/digits", "may not push"},
		{administer, "staging", "vision/*", administer, "staging/vision/digits", ""},
		{push, "**", "**", push, "prod/vision/digits", "environment prod is protected"},
		{administer, "**", "**", push, "prod/vision/digits", "environment prod is protected"},
		{administer, "**", "**", administer, "prod/vision/digits", "environment prod is protected"},
		{administer, "**", "**", push, "elsewhere/vision/digits", "no environment "},
		{administer, "**", "**", push, "staging-2/vision/digits", "no environment "},
	} {
		err := r.Authorize(as(t, c.has, c.environment, c.model), c.repository, c.wants)
		if c.says == "" && err != nil {
			t.Errorf("%s %s with %s of %s in %s: %v", c.wants, c.repository, c.has, c.model, c.environment, err)
		}
		if c.says != "" && (registry.CodeOf(err) != registry.CodeForbidden || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s %s with %s of %s in %s: error %v, want %q", c.wants, c.repository, c.has, c.model, c.environment, err, c.says)
		}
	}
	for _, permission := range storage.Permissions() {
		for _, repository := range []string{"", "staging/vision/digits", "prod/vision/digits"} {
			if err := r.Authorize(t.Context(), repository, permission); registry.CodeOf(err) != registry.CodeUnauthenticated {
				t.Errorf("nobody may %s %q: error %v", permission, repository, err)
			}
		}
	}
}

// A principal whose grants are what was left of a scope is asked to come back with the
// right one, unless it had asked for it.
func TestRepositoriesKnowWhatWasAsked(t *testing.T) {
	t.Parallel()
	r := access.Repositories{Environments: registrytest.Chain()}
	exact := func(p storage.Permission) storage.Grant {
		return storage.Grant{Permissions: []storage.Permission{p}, Environment: "staging", Model: model}
	}
	ctx := access.WithAsked(as(t, storage.PermissionRead, "staging", model),
		[]storage.Grant{exact(storage.PermissionRead), exact(storage.PermissionPush)})
	for permission, code := range map[storage.Permission]registry.Code{
		storage.PermissionPush: registry.CodeForbidden, storage.PermissionAdminister: registry.CodeUnauthenticated,
	} {
		if err := r.Authorize(ctx, "staging/"+model, permission); registry.CodeOf(err) != code {
			t.Errorf("%s: error %v, want %s", permission, err, code)
		}
	}
	if err := r.Authorize(ctx, "staging/"+model, storage.PermissionRead); err != nil {
		t.Error(err)
	}
	if err := r.Authorize(ctx, "staging/text/mood", storage.PermissionRead); registry.CodeOf(err) != registry.CodeUnauthenticated {
		t.Errorf("another repository: %v", err)
	}
}

// What belongs to no model takes a grant for all of them.
func TestAllowWhatBelongsToNoModel(t *testing.T) {
	t.Parallel()
	if err := access.Allow(as(t, storage.PermissionAdminister, "**", "**"), storage.PermissionAdminister, "", ""); err != nil {
		t.Error(err)
	}
	err := access.Allow(as(t, storage.PermissionAdminister, "*", "*"), storage.PermissionAdminister, "", "")
	const want = "token:test may not administer things that belong to no model"
	if registry.CodeOf(err) != registry.CodeForbidden || !strings.Contains(err.Error(), want) || len(registry.Hints(err)) != 1 {
		t.Errorf("error %v, hints %q", err, registry.Hints(err))
	}
}
