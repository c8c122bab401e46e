package storage

import (
	"context"
	"path"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Permission is an operation that a principal may be allowed to do in the service. It is
// unrelated to a signing role, which says whose signatures count.
type Permission string

// The permissions. No permission includes another, except PermissionAdminister, which includes all
// others within its grant, and PermissionRead, which includes PermissionList.
const (
	PermissionRead       Permission = "read"       // pull, resolve, list
	PermissionPush       Permission = "push"       // write unprotected repositories, publish
	PermissionVerify     Permission = "verify"     // attach evidence
	PermissionApprove    Permission = "approve"    // attach approvals and quarantines
	PermissionAttest     Permission = "attest"     // have the service sign approvals and quarantines in the caller's name
	PermissionPromote    Permission = "promote"    // promote, roll back, set and release holds
	PermissionAdminister Permission = "administer" // tokens, node types, webhooks, deletion, collection
	// PermissionList is the permission of tokens that OCI clients request for the list of repositories.
	PermissionList Permission = "list" // see the name of a repository
)

// Permissions lists every permission that can be granted.
func Permissions() []Permission {
	return []Permission{
		PermissionRead,
		PermissionPush,
		PermissionVerify,
		PermissionApprove,
		PermissionAttest,
		PermissionPromote,
		PermissionAdminister,
	}
}

// Grant allows permissions for the environments and models that match its patterns. A pattern
// follows [path.Match], in which "*" stays within a path component. A final "/**", or "**"
// alone, matches everything below. An empty pattern matches nothing.
type Grant struct {
	Permissions []Permission `json:"permissions"`
	Environment string       `json:"environment"`
	Model       string       `json:"model"`
}

// Principal is an authenticated caller. The zero Principal has no permissions.
type Principal struct {
	Name   string  `json:"name"` // unique, for logs and history: "token:ci", "oidc:ISSUER#SUBJECT"
	Grants []Grant `json:"grants"`
	// Person is who signed in; zero where that is not known, as with tokens that OCI clients got.
	Person evidence.Person `json:"person,omitzero"`
}

// May reports whether the principal has a permission for a model in an environment. Pass two
// empty strings for things that belong to no model, such as node types. They need a grant that
// matches every environment and model.
func (p Principal) May(permission Permission, environment, model string) bool {
	for _, g := range p.Grants {
		if g.allows(permission) && MatchPattern(g.Environment, environment) && MatchPattern(g.Model, model) {
			return true
		}
	}
	return false
}

// MayAnywhere reports whether the principal has a permission for any model in any environment.
func (p Principal) MayAnywhere(permission Permission) bool {
	for _, g := range p.Grants {
		if g.allows(permission) && g.Environment != "" && g.Model != "" {
			return true
		}
	}
	return false
}

// MayIn reports whether the principal has a permission for any model in an environment.
func (p Principal) MayIn(permission Permission, environment string) bool {
	for _, g := range p.Grants {
		if g.allows(permission) && MatchPattern(g.Environment, environment) && g.Model != "" {
			return true
		}
	}
	return false
}

// Prefixes returns prefixes of ENVIRONMENT/MODEL that cover every model for which the principal has a permission. They are
// sorted, and none begins with another. The permission may be missing for some models with such a prefix.
func (p Principal) Prefixes(permission Permission) []string {
	var all []string
	for _, g := range p.Grants {
		if !g.allows(permission) {
			continue
		}
		prefix, pattern := literal(g.Environment)
		if !pattern {
			model, _ := literal(g.Model)
			prefix += "/" + model
		}
		all = append(all, prefix)
	}
	slices.Sort(all)
	var shortest []string
	for _, prefix := range all {
		if len(shortest) == 0 || !strings.HasPrefix(prefix, shortest[len(shortest)-1]) {
			shortest = append(shortest, prefix)
		}
	}
	return shortest
}

// literal returns the part of a pattern before its first special character, and whether there is one.
func literal(pattern string) (prefix string, more bool) {
	i := strings.IndexAny(pattern, `*?[\`)
	if i < 0 {
		return pattern, false
	}
	return pattern[:i], true
}

// Validate refuses a grant that is empty or malformed. Errors: CodeInvalid.
func (g Grant) Validate() error {
	if len(g.Permissions) == 0 {
		return registry.Errorf(registry.CodeInvalid, "grant for %s in %s: no permissions: want one or more of %v", g.Model,
			g.Environment, Permissions())
	}
	for _, p := range g.Permissions {
		if !p.known() {
			return registry.Errorf(registry.CodeInvalid, "permission %q: want one of %v", p, Permissions())
		}
	}
	for what, pattern := range map[string]string{"environment": g.Environment, "model": g.Model} {
		if !ValidPattern(pattern) {
			return registry.Errorf(registry.CodeInvalid,
				"%s pattern %q: want a name; * matches part of a component, and a final /** everything below", what,
				pattern)
		}
	}
	return nil
}

// ValidPattern reports whether a pattern is valid in a [Grant].
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
	if permission == PermissionList {
		return slices.Contains(g.Permissions, PermissionList) || g.allows(PermissionRead)
	}
	return permission.known() &&
		(slices.Contains(g.Permissions, permission) || slices.Contains(g.Permissions, PermissionAdminister))
}

// MatchPattern reports whether a pattern of a [Grant] matches a name.
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

// principalKey is the context key of the Principal.
type principalKey struct{}

// WithPrincipal returns a context that acts on behalf of p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf returns the principal that ctx acts for. It returns false if there is none.
func PrincipalOf(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}
