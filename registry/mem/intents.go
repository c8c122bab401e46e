package mem

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// Begin records an intent.
func (db *DB) Begin(ctx context.Context, i history.Intent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	i.Begun = micros(db.now())
	db.intents[headKey{i.Environment, i.Model}] = i
	return nil
}

// End forgets an intent.
func (db *DB) End(ctx context.Context, environment, model string, release registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return tx{db}.EndIntent(ctx, environment, model, release)
}

// Abandon forgets an intent that is as it was.
func (db *DB) Abandon(ctx context.Context, i history.Intent) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return catalog.Abandon(ctx, tx{db}, i, func() error {
		if key := (headKey{i.Environment, i.Model}); db.intents[key] == i {
			delete(db.intents, key)
		}
		return nil
	})
}

// Pending lists intents by environment and model.
func (db *DB) Pending(ctx context.Context) ([]history.Intent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return slices.SortedFunc(maps.Values(db.intents), func(a, b history.Intent) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Model, b.Model))
	}), nil
}
