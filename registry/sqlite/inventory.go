package sqlite

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// HeldDigests lists a page of the digests that repositories hold.
func (db *DB) HeldDigests(
	ctx context.Context,
	after registry.Digest,
	since time.Time,
	limit int,
) ([]registry.Digest, error) {
	rows, err := db.read().
		HeldDigests(ctx, dbsqlc.HeldDigestsParams{After: string(after), Since: since.UnixMicro(), PageSize: int64(limit)})
	return catalog.Digests(rows), db.interpretError("list of content", err)
}

// Holders lists the repositories that hold a digest.
func (db *DB) Holders(ctx context.Context, d registry.Digest) ([]string, error) {
	repositories, err := db.read().Holders(ctx, string(d))
	return repositories, db.interpretError("repositories with "+string(d), err)
}
