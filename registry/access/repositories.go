package access

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Repositories decides over the OCI endpoint. A repository is ENVIRONMENT/MODEL; that of
// sources is a model of its own, MODEL/sources, so that who may pull engines need not be
// let to the cases that they are judged by.
type Repositories struct {
	Environments registry.Environments
}

// The actions on a repository, as scopes of tokens name them.
const (
	ActionPull   = "pull"
	ActionPush   = "push"
	ActionDelete = "delete"
)

// ActionPermission is the permission that an action on a repository needs. For an unknown
// action it is "", which is never granted.
func ActionPermission(action string) registry.Permission {
	switch action {
	case ActionPull:
		return registry.PermissionRead
	case ActionPush:
		return registry.PermissionPush
	case ActionDelete:
		return registry.PermissionAdminister
	}
	return ""
}

// Authorize refuses what the principal of ctx may not do. An empty repository asks only
// whether there is a principal. Only promotions and evidence write to protected environments;
// here that is refused to every principal. Errors: CodeUnauthenticated, also for a token that
// was not issued for this action; CodeForbidden.
func (r Repositories) Authorize(ctx context.Context, repository string, permission registry.Permission) error {
	p, err := principal(ctx)
	if err != nil || repository == "" {
		return err
	}
	environment, model, named := strings.Cut(repository, "/")
	if !named {
		return registry.Errorf(registry.CodeForbidden, "repository %s names no model: want ENVIRONMENT/MODEL", repository)
	}
	if !p.May(permission, environment, model) {
		if !wasAsked(ctx, permission, environment, model) {
			return registry.Errorf(registry.CodeUnauthenticated, "the token that was sent is not for this: ask for one with the scope of %s", repository)
		}
		return denied(p, permission, environment, model)
	}
	if permission == registry.PermissionRead {
		return nil
	}
	e, err := r.Environments.Find(environment)
	if err != nil {
		return registry.Errorf(registry.CodeForbidden, "repository %s is in no environment: %w", repository, err)
	}
	if e.Protected() {
		return registry.Errorf(registry.CodeForbidden, "environment %s is protected: promote a release into it", environment)
	}
	return nil
}
