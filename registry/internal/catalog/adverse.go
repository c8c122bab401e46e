package catalog

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AdverseRows are the rows of [evidence.AdverseEvidences].
type AdverseRows interface {
	PutDocument(ctx context.Context, kind, name, body string) error
	GetDocument(ctx context.Context, kind, name string) (string, error)
	ListDocuments(ctx context.Context, kind, after string, limit int) ([]DocumentRow, error)
	CountDocuments(ctx context.Context, kind, after, before string, most int) (int, error)
}

// AdverseTable is the table of adverse evidence.
func AdverseTable(d Documents) registry.Table[evidence.AdverseEvidence] {
	return table[evidence.AdverseEvidence]{d, adverseKind}
}

// adversePage is how many rows are in memory at a time. A row may have megabytes.
const adversePage = 4

// Adverse lists rows without their bytes. It counts them first, so that it reads no rows of others: mostly there are none.
func Adverse(ctx context.Context, d AdverseRows, model string, subject registry.Digest) ([]evidence.AdverseEvidence, error) {
	prefix := evidence.AdversePrefix(model, subject)
	var all []evidence.AdverseEvidence
	for after := prefix; ; {
		left, err := d.CountDocuments(ctx, adverseKind, after, prefix+string(utf8.MaxRune), storage.MaxPage)
		if err != nil || left == 0 {
			return all, err
		}
		for left > 0 {
			rows, err := d.ListDocuments(ctx, adverseKind, after, min(left, adversePage))
			if err != nil {
				return nil, err
			}
			for _, row := range rows {
				a, err := adverseRow(row.Name, row.Body)
				if err != nil {
					return nil, err
				}
				a.Manifest, a.Data = nil, nil
				all, after = append(all, a), row.Name
			}
			left -= adversePage
		}
	}
}

// AdverseRow returns a whole row.
func AdverseRow(ctx context.Context, d AdverseRows, name string) (evidence.AdverseEvidence, error) {
	body, err := d.GetDocument(ctx, adverseKind, name)
	if err != nil {
		return evidence.AdverseEvidence{}, err
	}
	a, err := adverseRow(name, body)
	if err == nil {
		err = a.Check()
	}
	return a, err
}

func adverseRow(name, body string) (a evidence.AdverseEvidence, err error) {
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.Name() != name {
		return a, registry.Errorf(registry.CodeDigest, "%s %s: its row in the catalog was changed", adverseKind, name)
	}
	return a, nil
}

// CountAdverse counts the rows of a's caller.
func CountAdverse(ctx context.Context, d AdverseRows, a evidence.AdverseEvidence) (int, error) {
	return d.CountDocuments(ctx, adverseKind, a.Prefix(), a.Prefix()+string(utf8.MaxRune), storage.MaxPage)
}

// KeepAdverse writes a row.
func KeepAdverse(ctx context.Context, d interface {
	PutDocument(ctx context.Context, kind, name, body string) error
}, a evidence.AdverseEvidence,
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
