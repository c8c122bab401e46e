package sqlite

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
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

// adverseChanges is the key of a remembered counter.
type adverseChanges struct{ model string }

// AdverseChanges counts the changes that kept adverse evidence about a model. Every resolve asks.
func (db *DB) AdverseChanges(ctx context.Context, model string) (int64, error) {
	n, err := recall(ctx, db.steady, adverseChanges{model}, func() (int64, error) {
		return optional(db.read().CounterGet(ctx, catalog.AdverseCounter(model)))
	})
	return n, db.interpretError("adverse evidence about "+model, err)
}

// PutDocument writes the row of a document.
func (q tx) PutDocument(ctx context.Context, kind, name, body string) error {
	return q.DocumentPut(ctx, dbsqlc.DocumentPutParams{Kind: kind, Name: name, Body: body})
}
