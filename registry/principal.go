package registry

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Permission is something that a principal may be allowed to do. Signing roles are
// another matter: a permission opens a door of the service, a role says whose
// signature counts.
type Permission string

// The permissions. One never includes another, but for PermissionAdminister, which
// includes all of them everywhere that it is granted.
const (
	PermissionRead       Permission = "read"       // pull, resolve, list
	PermissionPush       Permission = "push"       // write unprotected repositories, publish
	PermissionVerify     Permission = "verify"     // attach evidence
	PermissionApprove    Permission = "approve"    // attach quarantines
	PermissionPromote    Permission = "promote"    // promote, roll back, set and release holds
	PermissionAdminister Permission = "administer" // tokens, node types, webhooks, deletion, collection
)

// Permissions lists every permission.
func Permissions() []Permission {
	return []Permission{PermissionRead, PermissionPush, PermissionVerify, PermissionApprove, PermissionPromote, PermissionAdminister}
}

// Grant allows permissions in the environments and for the models that its patterns
// name. A pattern is one of [path.Match], whose "*" stays within a component; a final
// "/**", or "**" alone, names everything below. An empty pattern names nothing.
type Grant struct {
	Permissions []Permission `json:"permissions"`
	Environment string       `json:"environment"`
	Model       string       `json:"model"`
}

// Principal is who asks. The zero Principal may do nothing.
type Principal struct {
	Name   string  `json:"name"` // unique, for logs and history: "token:ci", "oidc:ISSUER#SUBJECT"
	Grants []Grant `json:"grants"`
}

// May reports whether the principal is allowed something for a model in an
// environment. Both empty ask for what belongs to no model, such as node types: for
// that a grant must name every environment and model.
func (p Principal) May(permission Permission, environment, model string) bool {
	for _, g := range p.Grants {
		if g.allows(permission) && MatchPattern(g.Environment, environment) && MatchPattern(g.Model, model) {
			return true
		}
	}
	return false
}

// MayAnywhere reports whether there is a model and environment for which the principal
// is allowed something.
func (p Principal) MayAnywhere(permission Permission) bool {
	for _, g := range p.Grants {
		if g.allows(permission) && g.Environment != "" && g.Model != "" {
			return true
		}
	}
	return false
}

// Validate refuses a grant that could not mean what its writer meant. Errors: CodeInvalid.
func (g Grant) Validate() error {
	if len(g.Permissions) == 0 {
		return Errorf(CodeInvalid, "grant for %s in %s: no permissions: want some of %v", g.Model, g.Environment, Permissions())
	}
	for _, p := range g.Permissions {
		if !p.known() {
			return Errorf(CodeInvalid, "permission %q: want one of %v", p, Permissions())
		}
	}
	for what, pattern := range map[string]string{"environment": g.Environment, "model": g.Model} {
		if !ValidPattern(pattern) {
			return Errorf(CodeInvalid, "%s pattern %q: want a name, with * for a part of a component and a final /** for all below", what, pattern)
		}
	}
	return nil
}

// ValidPattern reports whether a pattern is one as a [Grant] has them.
func ValidPattern(pattern string) bool {
	if pattern == "**" {
		return true
	}
	base := strings.TrimSuffix(pattern, "/**")
	_, err := path.Match(base, "")
	return err == nil && base != "" && !strings.Contains(base, "**")
}

func (p Permission) known() bool {
	return slices.Contains(Permissions(), p)
}

func (g Grant) allows(permission Permission) bool {
	return permission.known() &&
		(slices.Contains(g.Permissions, permission) || slices.Contains(g.Permissions, PermissionAdminister))
}

// MatchPattern reports whether a pattern as a [Grant] has them names a name.
func MatchPattern(pattern, name string) bool {
	base, all := strings.CutSuffix(pattern, "**")
	if !all {
		ok, err := path.Match(pattern, name)
		return ok && err == nil && name != ""
	}
	if base == "" {
		return true
	}
	above, slash := strings.CutSuffix(base, "/")
	parts := strings.Split(name, "/")
	depth := strings.Count(above, "/") + 1
	return slash && above != "" && len(parts) > depth && MatchPattern(above, strings.Join(parts[:depth], "/"))
}

// principalKey is where a context keeps who asks.
type principalKey struct{}

// WithPrincipal says on whose behalf ctx works.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf is who ctx works for. Without one it is the zero Principal, and false.
func PrincipalOf(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}
