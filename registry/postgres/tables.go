package postgres

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// The kinds of documents.
const (
	nodeTypeKind = "node type"
	runtimeKind  = "runtime"
	webhookKind  = "webhook"
	deliveryKind = "delivery"
	damageKind   = "damage"
	scrubKind    = "scrub"
)

// documentKinds are the kinds that Import copies.
func documentKinds() []string { return []string{nodeTypeKind, runtimeKind, webhookKind, deliveryKind} }

// NodeTypes is the table of named nodes.
func (db *DB) NodeTypes() registry.NodeTypes { return table[registry.Node]{db, nodeTypeKind} }

// Runtimes is the table of named runtimes.
func (db *DB) Runtimes() registry.Runtimes { return table[registry.Runtime]{db, runtimeKind} }

// Webhooks is the table of registered webhooks.
func (db *DB) Webhooks() registry.Webhooks { return table[registry.Webhook]{db, webhookKind} }

// Deliveries is the table of the delivery states of webhooks.
func (db *DB) Deliveries() registry.Deliveries { return table[registry.Delivery]{db, deliveryKind} }

// Damages is the table of known damage.
func (db *DB) Damages() registry.Damages { return table[registry.Damage]{db, damageKind} }

// ScrubStates is the table of the scrubber's progress.
func (db *DB) ScrubStates() registry.ScrubStates { return table[registry.ScrubState]{db, scrubKind} }

// table stores the documents of one kind.
type table[T any] struct {
	db   *DB
	kind string
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	ctx, cancel := t.db.limit(ctx)
	defer cancel()
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s %s: %w", t.kind, name, err)
	}
	err = t.db.queries().DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: t.kind, Name: name, Body: string(body)})
	return t.db.interpretError(t.kind+" "+name, err)
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	ctx, cancel := t.db.limit(ctx)
	defer cancel()
	body, err := t.db.queries().DocumentGet(ctx, dbsqlc.DocumentGetParams{Kind: t.kind, Name: name})
	if err == nil {
		err = json.Unmarshal([]byte(body), &document)
	}
	return document, t.db.interpretError(t.kind+" "+name, err)
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	ctx, cancel := t.db.limit(ctx)
	defer cancel()
	rows, err := t.db.queries().
		DocumentPage(ctx, dbsqlc.DocumentPageParams{Kind: t.kind, After: after, PageSize: pageLimit(limit)})
	if err != nil {
		return nil, t.db.interpretError(t.kind+"s", err)
	}
	var page []registry.Named[T]
	for _, row := range rows {
		named := registry.Named[T]{Name: row.Name}
		if err := json.Unmarshal([]byte(row.Body), &named.Document); err != nil {
			return nil, t.db.interpretError(t.kind+" "+row.Name, err)
		}
		page = append(page, named)
	}
	return page, nil
}

// Delete deletes a document.
func (t table[T]) Delete(ctx context.Context, name string) error {
	ctx, cancel := t.db.limit(ctx)
	defer cancel()
	n, err := t.db.queries().DocumentDelete(ctx, dbsqlc.DocumentDeleteParams{Kind: t.kind, Name: name})
	return t.db.interpretError(t.kind+" "+name, found(n, err))
}
