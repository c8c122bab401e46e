package mem

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// Agreed returns the agreed configuration, in which first fills what was never recorded.
func (db *DB) Agreed(ctx context.Context, first history.Configuration) (history.Configuration, error) {
	if err := ctx.Err(); err != nil {
		return history.Configuration{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return catalog.Agree(ctx, tx{db}, first)
}
