package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// AdverseTable is the table of adverse evidence.
func (db *DB) AdverseTable() registry.Table[evidence.AdverseEvidence] {
	return catalog.AdverseTable(documents{db})
}

// Adverse lists the adverse evidence about a subject, or of a model.
func (db *DB) Adverse(ctx context.Context, model string, subject registry.Digest) ([]evidence.AdverseEvidence, error) {
	return catalog.Adverse(ctx, documents{db}, model, subject)
}

// AdverseRow returns a whole row of adverse evidence.
func (db *DB) AdverseRow(ctx context.Context, name string) (evidence.AdverseEvidence, error) {
	return catalog.AdverseRow(ctx, documents{db}, name)
}

// CountAdverse counts the adverse evidence of a's caller.
func (db *DB) CountAdverse(ctx context.Context, a evidence.AdverseEvidence) (int, error) {
	return catalog.CountAdverse(ctx, documents{db}, a)
}

// KeepAdverse writes a row again.
func (db *DB) KeepAdverse(ctx context.Context, a evidence.AdverseEvidence) error {
	return catalog.KeepAdverse(ctx, documents{db}, a)
}

// AdverseChanges counts the changes that kept adverse evidence about a model.
func (db *DB) AdverseChanges(ctx context.Context, model string) (int64, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := optional(db.queries().CounterGet(ctx, catalog.AdverseCounter(model)))
	return n, db.interpretError("adverse evidence about "+model, err)
}

// PutDocument writes the row of a document.
func (q tx) PutDocument(ctx context.Context, kind, name, body string) error {
	return q.DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: kind, Name: name, Body: body})
}
