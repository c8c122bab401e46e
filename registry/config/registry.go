package config

import (
	"context"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/rest"
)

// Registry wraps a registry. Operations that change something fail if write returns an error, and those that decide fail if
// resolve does. What only reads passes unchecked: facts of the catalog and content by digest do not depend on the
// configuration.
func Registry(inner api.Interface, write, resolve func(ctx context.Context) error) api.Interface {
	return rest.Wrap(inner, func(ctx context.Context, c rest.Call) error {
		may := write
		switch c.Kind() {
		case rest.Reads:
			return c.Do(ctx)
		case rest.Decides:
			may = resolve
		}
		if err := may(ctx); err != nil {
			return err
		}
		return c.Do(ctx)
	})
}
