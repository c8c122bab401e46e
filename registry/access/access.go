package access

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Allow checks a permission of the principal of ctx for a model in an environment. Two empty
// names mean things that belong to no model: node types, tokens, webhooks. Errors:
// CodeUnauthenticated if ctx has no principal; CodeForbidden.
func Allow(ctx context.Context, permission storage.Permission, environment, model string) error {
	p, err := principal(ctx)
	if err != nil {
		return err
	}
	if !p.May(permission, environment, model) {
		return denied(p, permission, environment, model)
	}
	return nil
}

// AllowRoute is [Allow] for things that belong to no model, such as node types. To change them,
// the principal needs the permission for all models; to read them, the permission to read any
// model.
func AllowRoute(ctx context.Context, permission storage.Permission, environment, model string) error {
	if environment != "" || model != "" || permission != storage.PermissionRead {
		return Allow(ctx, permission, environment, model)
	}
	_, err := reader(ctx, "", "")
	return err
}

// principal returns the principal of ctx, or the reason why there is none.
func principal(ctx context.Context) (storage.Principal, error) {
	if err, ok := ctx.Value(refusalKey{}).(error); ok {
		return storage.Principal{}, err
	}
	p, ok := storage.PrincipalOf(ctx)
	if !ok || p.Name == "" {
		return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated, "a token is required, but none was sent")
	}
	return p, nil
}

// denied returns the error for a missing permission, with a hint that says how to get it.
func denied(p storage.Principal, permission storage.Permission, environment, model string) error {
	if environment == "" && model == "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeForbidden,
				"%s may not %s things that belong to no model: a grant for all environments and models is required",
				p.Name, permission),
			"an administrator can make a token with --allow %s --env '**' --model '**'",
			permission,
		)
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeForbidden, "%s may not %s %s in %s: no grant allows it", p.Name, permission,
			orAny(model), orAny(environment)),
		"an administrator can make a token with --allow %s --env %s --model %s",
		permission,
		orAll(environment),
		orAll(model),
	)
}

func orAny(name string) string {
	if name == "" {
		return "anything"
	}
	return name
}

func orAll(name string) string {
	if name == "" {
		return "'**'"
	}
	return name
}

type (
	refusalKey struct{}
	askedKey   struct{}
)

// WithRefusal stores in ctx why it has no principal, for an endpoint with its own format of
// refusals. err should be CodeUnauthenticated, or CodeUnavailable if the caller could not be
// checked.
func WithRefusal(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, refusalKey{}, err)
}

// WithAsked stores in ctx what the token of an OCI client was requested for. The grants of the
// principal are limited to that. Another token may allow more.
func WithAsked(ctx context.Context, asked []storage.Grant) context.Context {
	return context.WithValue(ctx, askedKey{}, asked)
}

// wasAsked reports whether the token was requested for the permission.
func wasAsked(ctx context.Context, permission storage.Permission, environment, model string) bool {
	asked, narrowed := ctx.Value(askedKey{}).([]storage.Grant)
	return !narrowed || storage.Principal{Grants: asked}.May(permission, environment, model)
}

// RefusalOf returns what [WithRefusal] stored in ctx, or nil.
func RefusalOf(ctx context.Context) error {
	err, _ := ctx.Value(refusalKey{}).(error)
	return err
}
