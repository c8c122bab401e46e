package postgres

import (
	"context"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// HeldDigests lists a page of the digests that repositories hold.
func (db *DB) HeldDigests(
	ctx context.Context,
	after registry.Digest,
	since time.Time,
	limit int,
) ([]registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().
		HeldDigests(ctx, dbsqlc.HeldDigestsParams{After: string(after), Since: since, PageSize: int32(min(limit, math.MaxInt32))})
	return catalog.Digests(rows), db.interpretError("list of content", err)
}

// Holders lists the repositories that hold a digest.
func (db *DB) Holders(ctx context.Context, d registry.Digest) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	repositories, err := db.queries().Holders(ctx, string(d))
	return repositories, db.interpretError("repositories with "+string(d), err)
}
