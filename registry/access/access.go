package access

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Allow refuses what the principal of ctx may not do to a model in an environment. Both
// empty ask for what belongs to no model: node types, tokens, webhooks. Errors:
// CodeUnauthenticated when ctx has no principal; CodeForbidden.
func Allow(ctx context.Context, permission registry.Permission, environment, model string) error {
	p, err := principal(ctx)
	if err != nil {
		return err
	}
	if !p.May(permission, environment, model) {
		return denied(p, permission, environment, model)
	}
	return nil
}

// AllowRoute is [Allow] for what belongs to no model, such as node types: to change it takes
// a permission for everything, to read it a permission to read anything.
func AllowRoute(ctx context.Context, permission registry.Permission, environment, model string) error {
	if environment != "" || model != "" || permission != registry.PermissionRead {
		return Allow(ctx, permission, environment, model)
	}
	_, err := reader(ctx, "", "")
	return err
}

// principal is who asks, or why nobody is known.
func principal(ctx context.Context) (registry.Principal, error) {
	if err, ok := ctx.Value(refusalKey{}).(error); ok {
		return registry.Principal{}, err
	}
	p, ok := registry.PrincipalOf(ctx)
	if !ok || p.Name == "" {
		return registry.Principal{}, registry.Errorf(registry.CodeUnauthenticated, "this takes a token, and none was sent")
	}
	return p, nil
}

// denied says who may not do what, and what would let him.
func denied(p registry.Principal, permission registry.Permission, environment, model string) error {
	if environment == "" && model == "" {
		return registry.WithHint(
			registry.Errorf(registry.CodeForbidden, "%s may not %s outside of models: that needs a grant for all environments and models", p.Name, permission),
			"an administrator can make a token with --allow %s --env '**' --model '**'", permission)
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeForbidden, "%s may not %s %s in %s: no grant allows it", p.Name, permission, orAny(model), orAny(environment)),
		"an administrator can make a token with --allow %s --env %s --model %s", permission, orAll(environment), orAll(model))
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

// WithRefusal says in ctx why it has no principal: for an endpoint that has to say so in
// a form of its own. err should be CodeUnauthenticated, or CodeUnavailable where it could
// not be found out.
func WithRefusal(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, refusalKey{}, err)
}

// WithAsked says in ctx that the grants of its principal are those that were left of
// what was asked for, as the token of an OCI client has them. What was not asked for may
// be allowed all the same, by another token.
func WithAsked(ctx context.Context, asked []registry.Grant) context.Context {
	return context.WithValue(ctx, askedKey{}, asked)
}

// wasAsked reports whether the principal of ctx would have a permission if it were allowed.
func wasAsked(ctx context.Context, permission registry.Permission, environment, model string) bool {
	asked, narrowed := ctx.Value(askedKey{}).([]registry.Grant)
	return !narrowed || registry.Principal{Grants: asked}.May(permission, environment, model)
}
