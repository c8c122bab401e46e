package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Source is a catalog that does not change while it is read.
type Source interface {
	storage.GCStore
	storage.Recipes
	CatalogIdentity(ctx context.Context) (storage.CatalogIdentity, error)
	AllManifests(ctx context.Context) iter.Seq2[storage.RepositoryManifest, error]
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	ModelState(ctx context.Context, environment, model string) (history.ModelState, error)
	Pending(ctx context.Context) ([]history.Intent, error)
	ListTokens(ctx context.Context) ([]storage.Token, error)
	catalog.Tables
}

// Import copies another catalog in one transaction: names with the times of their records, recipes,
// heads, the history row by row, intents, tokens and documents. It does not copy temporary
// data: uploads in progress, saved answers, leases, marks of the garbage collector, and the key
// of short-lived tokens. If it fails, nothing has changed. Errors: CodeConflict if the database
// is not empty; CodeTrust if the history's chain is broken; CodeInvalid for a text that
// PostgreSQL cannot store.
func (db *DB) Import(ctx context.Context, from Source) error {
	tx, err := db.pool.Begin(ctx)
	if err != nil {
		return db.interpretError("import", err)
	}
	q := dbsqlc.New(tx)
	err = q.ChainLock(ctx)
	for _, step := range []func(context.Context, *dbsqlc.Queries, Source) error{
		refuseUsed, importOrigins, importManifests, importHoldings, importRecipes, importHistory, importCounters,
		importHeads, importIntents, importTokens, importDocuments,
	} {
		if err == nil {
			err = step(ctx, q, from)
		}
	}
	if err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx)) // if this fails the connection is closed, which also rolls back
		return db.interpretError("import", err)
	}
	return db.interpretError("import", tx.Commit(ctx))
}

// RefuseUsed returns CodeConflict if the database is not empty.
func (db *DB) RefuseUsed(ctx context.Context) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.interpretError("look at the database", refuseUsed(ctx, db.queries(), nil))
}

func refuseUsed(ctx context.Context, q *dbsqlc.Queries, _ Source) error {
	repositories, err := q.RepositoryList(ctx)
	if err != nil {
		return err
	}
	heads, err := q.HeadList(ctx, dbsqlc.HeadListParams{})
	if err != nil {
		return err
	}
	tokens, err := q.TokenList(ctx)
	if err != nil {
		return err
	}
	intents, err := q.IntentList(ctx)
	if err != nil {
		return err
	}
	_, err = q.HistoryLast(ctx)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	used := err == nil || len(repositories)+len(heads)+len(tokens)+len(intents) > 0
	for _, kind := range catalog.LastingKinds() {
		page, err := q.DocumentPage(ctx, dbsqlc.DocumentPageParams{Kind: kind, PageSize: 1})
		if err != nil {
			return err
		}
		used = used || len(page) > 0
	}
	if used {
		return registry.Lastingf(registry.CodeConflict, "the database already has a catalog: want an empty one (createdb)")
	}
	return nil
}

// importOrigins records from which catalog this one is restored.
func importOrigins(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	source, err := from.CatalogIdentity(ctx)
	if err != nil {
		return err
	}
	return q.CatalogSetOrigins(ctx, catalog.JoinOrigins(source.ID, source.Origins...))
}

// importManifests makes the records and the data derived from them.
func importManifests(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	for m, err := range from.AllManifests(ctx) {
		if err != nil {
			return err
		}
		if err := (tx{q}).setDerived(ctx, m.Repository, m.Manifest); err != nil {
			return err
		}
	}
	return nil
}

// importHoldings makes memberships, manifests and tags.
func importHoldings(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	repositories, err := from.Repositories(ctx)
	if err != nil {
		return err
	}
	for _, repository := range repositories {
		held, err := from.Records(ctx, repository)
		if err != nil {
			return err
		}
		for _, h := range held {
			if err := importHolding(ctx, q, repository, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func importHolding(ctx context.Context, q *dbsqlc.Queries, repository string, h storage.GCRecord) error {
	if !h.Manifest {
		return q.BlobAdd(ctx,
			dbsqlc.BlobAddParams{Repository: repository, Digest: string(h.Digest), Size: h.Size, Created: &h.Created})
	}
	err := q.ManifestAdd(
		ctx,
		dbsqlc.ManifestAddParams{
			Repository: repository,
			Digest:     string(h.Digest),
			MediaType:  h.MediaType,
			Size:       h.Size,
			Created:    &h.Created,
		},
	)
	for _, tag := range h.Tags {
		if err == nil {
			_, err = q.TagSet(ctx, dbsqlc.TagSetParams{Repository: repository, Tag: tag, Digest: string(h.Digest)})
		}
	}
	return err
}

// importRecipes copies the recipes, as recorded now.
func importRecipes(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	for after := registry.Digest(""); ; {
		page, err := from.RecipeDigests(ctx, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, d := range page {
			recipe, err := from.Recipe(ctx, d)
			if err != nil {
				return err
			}
			if err := addRecipe(ctx, q, recipe); err != nil {
				return err
			}
			after = d
		}
	}
}

// importHistory keeps each row as it is, and its place in the chain.
func importHistory(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	var before history.Event
	for e, err := range from.History(ctx, history.HistoryQuery{}) {
		if err == nil {
			err = e.VerifyChain(before)
		}
		if err != nil {
			return err
		}
		body, err := catalog.EncodeEvent(e)
		if err != nil {
			return err
		}
		if err := (tx{q}).AppendEvent(ctx, e.Seq, body); err != nil {
			return err
		}
		before = e
	}
	return nil
}

// importCounters continues the counters of the other catalog.
func importCounters(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	s, err := from.ModelState(ctx, "", "")
	if err != nil {
		return err
	}
	return tx{q}.AddToCounter(ctx, catalog.Restrictions, s.Restrictions)
}

func importHeads(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	heads, err := from.Heads(ctx, "", "")
	for _, h := range heads {
		if err == nil {
			err = tx{q}.SetHead(ctx, h)
		}
	}
	return err
}

func importIntents(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	pending, err := from.Pending(ctx)
	for _, i := range pending {
		if err == nil {
			err = q.IntentBegin(
				ctx,
				dbsqlc.IntentBeginParams{
					Environment: i.Environment,
					Model:       i.Model,
					Source:      i.From,
					Release:     string(i.Release),
					Begun:       &i.Begun,
				},
			)
		}
	}
	return err
}

func importTokens(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	tokens, err := from.ListTokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		row, err := tokenRow(t)
		if err != nil {
			return err
		}
		if err := q.TokenCreate(ctx, row); err != nil {
			return err
		}
		if t.LastUsed.IsZero() {
			continue
		}
		if _, err := q.TokenUse(ctx, dbsqlc.TokenUseParams{ID: t.ID, At: t.LastUsed}); err != nil {
			return err
		}
	}
	return nil
}

func importDocuments(ctx context.Context, q *dbsqlc.Queries, from Source) error {
	return catalog.CopyTables(ctx, from, func(ctx context.Context, kind, name, body string) error {
		return q.DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: kind, Name: name, Body: body})
	})
}
