package sqlite

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// NodeTypes is the table of named nodes.
func (db *DB) NodeTypes() registry.NodeTypes { return table[registry.Node]{db, "node type"} }

// Runtimes is the table of named runtimes.
func (db *DB) Runtimes() registry.Runtimes { return table[registry.Runtime]{db, "runtime"} }

// Webhooks is the table of registered webhooks.
func (db *DB) Webhooks() registry.Webhooks { return table[registry.Webhook]{db, "webhook"} }

// Deliveries is the table of the delivery states of webhooks.
func (db *DB) Deliveries() registry.Deliveries { return table[registry.Delivery]{db, "delivery"} }

// Damages is the table of known damage.
func (db *DB) Damages() registry.Damages { return table[registry.Damage]{db, "damage"} }

// ScrubStates is the table of the scrubber's progress.
func (db *DB) ScrubStates() registry.ScrubStates { return table[registry.ScrubState]{db, "scrub"} }

// table stores the documents of one kind.
type table[T any] struct {
	db   *DB
	kind string
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s %s: %w", t.kind, name, err)
	}
	err = t.db.write().DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: t.kind, Name: name, Body: string(body)})
	return t.db.interpretError(t.kind+" "+name, err)
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	body, err := t.db.read().DocumentGet(ctx, dbsqlc.DocumentGetParams{Kind: t.kind, Name: name})
	if err == nil {
		err = json.Unmarshal([]byte(body), &document)
	}
	return document, t.db.interpretError(t.kind+" "+name, err)
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	rows, err := t.db.read().
		DocumentPage(ctx, dbsqlc.DocumentPageParams{Kind: t.kind, After: after, PageSize: int64(limit)})
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
	n, err := t.db.write().DocumentDelete(ctx, dbsqlc.DocumentDeleteParams{Kind: t.kind, Name: name})
	return t.db.interpretError(t.kind+" "+name, found(n, err))
}
