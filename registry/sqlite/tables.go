package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// NodeTypes is the table of named nodes.
func (db *DB) NodeTypes() storage.NodeTypes {
	return catalog.NodeTypes(steadyDocuments{documents{db}})
}

// Runtimes is the table of named runtimes.
func (db *DB) Runtimes() storage.Runtimes { return catalog.Runtimes(steadyDocuments{documents{db}}) }

// Webhooks is the table of registered webhooks.
func (db *DB) Webhooks() storage.Webhooks { return catalog.Webhooks(documents{db}) }

// Deliveries is the table of the delivery states of webhooks.
func (db *DB) Deliveries() storage.Deliveries { return catalog.Deliveries(documents{db}) }

// Checkpoints is the table of signed checkpoints of the history.
func (db *DB) Checkpoints() trust.Checkpoints { return catalog.Checkpoints(documents{db}) }

// Damages is the table of known damage.
func (db *DB) Damages() storage.Damages { return catalog.Damages(documents{db}) }

// ScrubStates is the table of the scrubber's progress.
func (db *DB) ScrubStates() storage.ScrubStates { return catalog.ScrubStates(documents{db}) }

// Replicas is the table of replicas.
func (db *DB) Replicas() storage.Replicas { return catalog.Replicas(documents{db}) }

// ReplicaMarks is the table of the marks of replicas.
func (db *DB) ReplicaMarks() storage.ReplicaMarks { return catalog.ReplicaMarks(documents{db}) }

// RestrictionBundles is the table of signed restriction lists.
func (db *DB) RestrictionBundles() storage.RestrictionBundles {
	return catalog.RestrictionBundles(documents{db})
}

// TrustBundles is the table of signed trust bundles.
func (db *DB) TrustBundles() storage.TrustBundles { return catalog.TrustBundles(documents{db}) }

// NodeReports is the table of what nodes reported.
func (db *DB) NodeReports() storage.NodeReports { return catalog.NodeReports(documents{db}) }

// documents reads and writes the rows of tables.
type documents struct{ db *DB }

// PutDocument writes the row of a document.
func (d documents) PutDocument(ctx context.Context, kind, name, body string) error {
	err := d.db.write().DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: kind, Name: name, Body: body})
	return d.db.interpretError(kind+" "+name, err)
}

// GetDocument reads the body of a document.
func (d documents) GetDocument(ctx context.Context, kind, name string) (string, error) {
	body, err := d.db.read().DocumentGet(ctx, dbsqlc.DocumentGetParams{Kind: kind, Name: name})
	return body, d.db.interpretError(kind+" "+name, err)
}

// ListDocuments reads a page of rows.
func (d documents) ListDocuments(ctx context.Context, kind, after string, limit int) ([]catalog.DocumentRow, error) {
	rows, err := d.db.read().
		DocumentPage(ctx, dbsqlc.DocumentPageParams{Kind: kind, After: after, PageSize: int64(limit)})
	return catalog.Convert(rows, documentRow), d.db.interpretError(kind+"s", err)
}

func documentRow(row dbsqlc.DocumentPageRow) catalog.DocumentRow { return catalog.DocumentRow(row) }

// DeleteDocument deletes the row of a document.
func (d documents) DeleteDocument(ctx context.Context, kind, name string) error {
	n, err := d.db.write().DocumentDelete(ctx, dbsqlc.DocumentDeleteParams{Kind: kind, Name: name})
	return d.db.interpretError(kind+" "+name, catalog.Found(n, err))
}

// CountDocuments counts rows between two names.
func (d documents) CountDocuments(ctx context.Context, kind, after, before string, most int) (int, error) {
	n, err := d.db.read().DocumentCount(ctx, dbsqlc.DocumentCountParams{Kind: kind, After: after, Before: before, Most: int64(most)})
	return int(n), d.db.interpretError(kind+"s", err)
}

// DeleteDocumentWith deletes the row of a document that has this body.
func (d documents) DeleteDocumentWith(ctx context.Context, kind, name, body string) (bool, error) {
	n, err := d.db.write().DocumentDeleteWith(ctx, dbsqlc.DocumentDeleteWithParams{Kind: kind, Name: name, Body: body})
	return n > 0, d.db.interpretError(kind+" "+name, err)
}

// steadyDocuments remembers documents, and that there is none of a name. Nodes ask for node types
// and runtimes with every resolve.
type steadyDocuments struct{ documents }

// maxSteadyName is the length of the longest name that is remembered. A request may ask for a name
// of any length.
const maxSteadyName = 255

// GetDocument reads the body of a document, or recalls it.
func (d steadyDocuments) GetDocument(ctx context.Context, kind, name string) (string, error) {
	if len(name) > maxSteadyName {
		return d.documents.GetDocument(ctx, kind, name)
	}
	key := dbsqlc.DocumentGetParams{Kind: kind, Name: name}
	known, err := recall(ctx, d.db.steady, key, func() (document, error) {
		body, err := d.db.read().DocumentGet(ctx, key)
		if errors.Is(err, sql.ErrNoRows) {
			return document{}, nil
		}
		return document{body, true}, err
	})
	if err == nil && !known.found {
		err = sql.ErrNoRows
	}
	return known.body, d.db.interpretError(kind+" "+name, err)
}
