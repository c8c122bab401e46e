package authn

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/storage"
)

// maxScopes limits the scopes of one token request.
const maxScopes = 100

// scopes parses requested scopes: repository:NAME:ACTION[,ACTION] and registry:catalog:*, several in one value or in
// many. It returns one grant per repository, and one to list all of them. It ignores other resources and unknown actions, as
// the protocol requires. Errors: CodeInvalid.
//
// Source: https://distribution.github.io/distribution/spec/auth/scope/.
func scopes(values []string) ([]storage.Grant, error) {
	var asked []storage.Grant
	n := 0
	for _, value := range values {
		for scope := range strings.SplitSeq(value, " ") {
			if scope == "" {
				continue
			}
			if n++; n > maxScopes {
				return nil, registry.Errorf(registry.CodeInvalid, "scope: want at most %d in one request", maxScopes)
			}
			grant, ok, err := parseScope(scope)
			if err != nil {
				return nil, err
			}
			if ok {
				asked = append(asked, grant)
			}
		}
	}
	return asked, nil
}

func parseScope(scope string) (grant storage.Grant, ok bool, err error) {
	kind, rest, _ := strings.Cut(scope, ":")
	last := strings.LastIndexByte(rest, ':')
	if kind == "" || last < 0 {
		return storage.Grant{}, false, registry.Errorf(registry.CodeInvalid,
			"scope %.300q: want repository:NAME:ACTION[,ACTION]", scope)
	}
	if scope == access.CatalogScope {
		return storage.Grant{Permissions: []storage.Permission{storage.PermissionList}, Environment: "**", Model: "**"}, true, nil
	}
	name, actions := rest[:last], rest[last+1:]
	if kind, _, _ = strings.Cut(kind, "("); kind != "repository" {
		return storage.Grant{}, false, nil
	}
	if !registry.ValidRepository(name) {
		return storage.Grant{}, false, registry.Errorf(registry.CodeInvalid,
			"scope %.300q: %.300q is not a repository name", scope, name)
	}
	grant.Environment, grant.Model, _ = strings.Cut(name, "/")
	if actions == "*" {
		actions = strings.Join([]string{access.ActionPull, access.ActionPush, access.ActionDelete}, ",")
	}
	for action := range strings.SplitSeq(actions, ",") {
		if p := access.ActionPermission(action); p != "" && p != storage.PermissionList && !slices.Contains(grant.Permissions, p) {
			grant.Permissions = append(grant.Permissions, p)
		}
	}
	return grant, len(grant.Permissions) > 0 && grant.Model != "", nil
}

// narrow returns the part of the requested grants that a principal has.
func narrow(p storage.Principal, asked []storage.Grant) []storage.Grant {
	var granted []storage.Grant
	for _, g := range asked {
		if slices.Contains(g.Permissions, storage.PermissionList) {
			granted = append(granted, listed(p)...)
			continue
		}
		left := slices.DeleteFunc(slices.Clone(g.Permissions), func(permission storage.Permission) bool {
			return !p.May(permission, g.Environment, g.Model)
		})
		if len(left) > 0 {
			granted = append(granted, storage.Grant{Permissions: left, Environment: g.Environment, Model: g.Model})
		}
	}
	return granted
}

// listed returns grants to list what the principal may list.
func listed(p storage.Principal) []storage.Grant {
	var granted []storage.Grant
	for _, g := range p.Grants {
		only := storage.Grant{Permissions: []storage.Permission{storage.PermissionList}, Environment: g.Environment, Model: g.Model}
		if (storage.Principal{Grants: []storage.Grant{g}}).MayAnywhere(storage.PermissionList) {
			granted = append(granted, only)
		}
	}
	return granted
}
