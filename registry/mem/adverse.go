package mem

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

// Adverse lists the adverse evidence about a subject, or of a model.
func (db *DB) Adverse(ctx context.Context, model string, subject registry.Digest) ([]evidence.AdverseEvidence, error) {
	return catalog.Adverse(ctx, adverseRows{db.adverse}, model, subject)
}

// AdverseRow returns a whole row of adverse evidence.
func (db *DB) AdverseRow(ctx context.Context, name string) (evidence.AdverseEvidence, error) {
	return catalog.AdverseRow(ctx, adverseRows{db.adverse}, name)
}

// CountAdverse counts the adverse evidence of a's caller.
func (db *DB) CountAdverse(ctx context.Context, a evidence.AdverseEvidence) (int, error) {
	return catalog.CountAdverse(ctx, adverseRows{db.adverse}, a)
}

// KeepAdverse writes a row again.
func (db *DB) KeepAdverse(ctx context.Context, a evidence.AdverseEvidence) error {
	return catalog.KeepAdverse(ctx, adverseRows{db.adverse}, a)
}

// AdverseTable is the table of adverse evidence.
func (db *DB) AdverseTable() registry.Table[evidence.AdverseEvidence] { return db.adverse }

// AdverseChanges counts the changes that kept adverse evidence about a model.
func (db *DB) AdverseChanges(ctx context.Context, model string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.counters[catalog.AdverseCounter(model)], nil
}

// PutDocument writes a row. Of adverse evidence alone a change has any.
func (t tx) PutDocument(ctx context.Context, kind, name, body string) error {
	return adverseRows{t.adverse}.PutDocument(ctx, kind, name, body)
}

// adverseRows are the rows of a table as a database has them.
type adverseRows struct {
	*Table[evidence.AdverseEvidence]
}

// PutDocument writes a row.
func (r adverseRows) PutDocument(_ context.Context, _, name, body string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents[name] = []byte(body)
	return nil
}

// GetDocument returns a row.
func (r adverseRows) GetDocument(ctx context.Context, kind, name string) (string, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	body, ok := r.documents[name]
	if !ok {
		return "", registry.Errorf(registry.CodeNotFound, "%s %s: not found", kind, name)
	}
	return string(body), ctx.Err()
}

// ListDocuments lists a page of rows.
func (r adverseRows) ListDocuments(ctx context.Context, _, after string, limit int) ([]catalog.DocumentRow, error) {
	return r.rows(after, limit), ctx.Err()
}

// CountDocuments counts the rows between two names.
func (r adverseRows) CountDocuments(ctx context.Context, _, after, before string, most int) (int, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n := 0
	for name := range r.documents {
		if name > after && name < before && n < most {
			n++
		}
	}
	return n, ctx.Err()
}
