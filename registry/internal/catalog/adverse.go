package catalog

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// AdverseRows are the rows of [registry.AdverseEvidences].
type AdverseRows interface {
	PutDocument(ctx context.Context, kind, name, body string) error
	ListDocuments(ctx context.Context, kind, after string, limit int) ([]DocumentRow, error)
	CountDocuments(ctx context.Context, kind, after, before string, most int) (int, error)
}

// AdverseTable is the table of adverse evidence.
func AdverseTable(d Documents) registry.Table[registry.AdverseEvidence] {
	return table[registry.AdverseEvidence]{d, adverseKind}
}

// Adverse lists rows. It counts them first, so that it reads no rows of others: mostly there are none.
func Adverse(ctx context.Context, d AdverseRows, model string, subject registry.Digest) ([]registry.AdverseEvidence, error) {
	prefix := registry.AdversePrefix(model, subject)
	var all []registry.AdverseEvidence
	for after := prefix; ; after = all[len(all)-1].Name() {
		n, err := d.CountDocuments(ctx, adverseKind, after, prefix+string(utf8.MaxRune), registry.MaxPage)
		if err != nil || n == 0 {
			return all, err
		}
		rows, err := d.ListDocuments(ctx, adverseKind, after, n)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			var a registry.AdverseEvidence
			if err := json.Unmarshal([]byte(row.Body), &a); err != nil || a.Name() != row.Name {
				return nil, registry.Errorf(registry.CodeDigest, "%s %s: its row in the catalog was changed", adverseKind, row.Name)
			}
			all = append(all, a)
		}
		if len(rows) < registry.MaxPage {
			return all, nil
		}
	}
}

// CountAdverse counts the rows of a's caller.
func CountAdverse(ctx context.Context, d AdverseRows, a registry.AdverseEvidence) (int, error) {
	return d.CountDocuments(ctx, adverseKind, a.Prefix(), a.Prefix()+string(utf8.MaxRune), registry.MaxPage)
}

// KeepAdverse writes a row.
func KeepAdverse(ctx context.Context, d interface {
	PutDocument(ctx context.Context, kind, name, body string) error
}, a registry.AdverseEvidence,
) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return d.PutDocument(ctx, adverseKind, a.Name(), string(body))
}

// AdverseCounter is the name of the counter of changes that kept adverse evidence about a model.
func AdverseCounter(model string) string { return "adverse " + model }

// keep writes the evidence that the catalog keeps, and counts the change.
func (o Outcome) keep(ctx context.Context, w Writer) error {
	for _, a := range o.Keeps {
		if err := KeepAdverse(ctx, w, a); err != nil {
			return err
		}
	}
	if len(o.Keeps) == 0 {
		return nil
	}
	return w.AddToCounter(ctx, AdverseCounter(o.Event.Model), 1)
}
