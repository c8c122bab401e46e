package access

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Guard wraps a registry and checks the permissions of the context's principal on every call, by the row of the operation.
// Lists leave out entries that the principal may not read.
func Guard(inner api.Interface) api.Interface {
	return rest.Wrap(inner, func(ctx context.Context, c rest.Call) error {
		p, err := principal(ctx)
		if err != nil {
			return err
		}
		if err := admit(ctx, p, c); err != nil {
			return err
		}
		return c.DoFor(ctx, p)
	})
}

// admit checks the permission of one call.
func admit(ctx context.Context, p storage.Principal, c rest.Call) error {
	at, err := c.Needs(ctx)
	if err != nil {
		return err
	}
	row := c.Describe()
	switch {
	case at.Permission == "":
		return registry.Errorf(registry.CodeForbidden, "%s may not do this: operation %s has no permission", p.Name, row.Name)
	case row.Rule == rest.WithAnyGrant:
		return granted(p)
	case row.Rule == rest.AmongReadable:
		_, err := reader(ctx, at.Environment, at.Model)
		return err
	case row.Rule == rest.InEnvironment && p.MayIn(at.Permission, at.Environment):
		return nil
	case row.Rule == rest.AtPlace && p.May(at.Permission, at.Environment, at.Model):
		return nil
	}
	return denied(p, at.Permission, at.Environment, at.Model)
}

// granted checks that the principal has a grant, for anything.
func granted(p storage.Principal) error {
	if slices.ContainsFunc(storage.Permissions(), p.MayAnywhere) {
		return nil
	}
	return registry.Errorf(registry.CodeForbidden, "%s has no grants", p.Name)
}

// reader returns the principal that reads a list. For the list of one model it must have the
// permission for that model.
func reader(ctx context.Context, environment, model string) (storage.Principal, error) {
	p, err := principal(ctx)
	switch {
	case err != nil:
		return storage.Principal{}, err
	case environment != "" && model != "":
		return p, Allow(ctx, storage.PermissionRead, environment, model)
	case !p.MayAnywhere(storage.PermissionRead):
		return storage.Principal{}, registry.Errorf(registry.CodeForbidden, "%s may not read: no grant allows it", p.Name)
	}
	return p, nil
}
