package access

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Repositories enforces permissions on the OCI endpoint. A repository is ENVIRONMENT/MODEL. The
// repository of a model's sources counts as the separate model MODEL/sources. So callers that
// may pull engines need not have access to the test cases.
type Repositories struct {
	Environments policy.Environments
}

// The actions on a repository, as scopes of tokens name them.
const (
	ActionPull   = "pull"
	ActionPush   = "push"
	ActionDelete = "delete"
	ActionList   = "list" // see the name of a repository in the catalog
)

// ActionPermission is the permission that an action on a repository needs. For an unknown
// action it is "", which is never granted.
func ActionPermission(action string) storage.Permission {
	switch action {
	case ActionPull:
		return storage.PermissionRead
	case ActionPush:
		return storage.PermissionPush
	case ActionDelete:
		return storage.PermissionAdminister
	case ActionList:
		return storage.PermissionList
	}
	return ""
}

// CatalogScope is the scope of a token for the list of repositories.
const CatalogScope = "registry:catalog:*"

// Prefixes returns prefixes that cover the names of all repositories that the principal of ctx may list.
func (Repositories) Prefixes(ctx context.Context) []string {
	p, _ := storage.PrincipalOf(ctx)
	return p.Prefixes(storage.PermissionList)
}

// Authorize checks a permission of the principal of ctx. An empty repository only checks that
// there is a principal, and for the list of repositories that its token is for that. Every principal is refused writes to protected environments: only
// promotions and evidence change them. Errors: CodeUnauthenticated, also for a token that was
// not issued for this action; CodeForbidden.
func (r Repositories) Authorize(ctx context.Context, repository string, permission storage.Permission) error {
	p, err := principal(ctx)
	if err == nil && permission == storage.PermissionList && !wasAsked(ctx, permission, "", "") {
		err = registry.Errorf(registry.CodeUnauthenticated,
			"the token does not cover the list of repositories: request one with the scope %s", CatalogScope)
	}
	if err != nil || repository == "" {
		return err
	}
	environment, model, named := strings.Cut(repository, "/")
	if !named {
		return registry.Errorf(registry.CodeForbidden, "repository %s: want ENVIRONMENT/MODEL", repository)
	}
	if !p.May(permission, environment, model) {
		if !wasAsked(ctx, permission, environment, model) {
			return registry.Errorf(registry.CodeUnauthenticated,
				"the token does not cover this action: request one with the scope of %s", repository)
		}
		return denied(p, permission, environment, model)
	}
	if permission == storage.PermissionRead || permission == storage.PermissionList {
		return nil
	}
	e, err := r.Environments.Find(environment)
	if err != nil {
		return registry.Errorf(registry.CodeForbidden, "repository %s: %w", repository, err)
	}
	if e.Protected() {
		return registry.Errorf(registry.CodeForbidden, "environment %s is protected: promote a release into it", environment)
	}
	return nil
}
