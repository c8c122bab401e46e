package catalog

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Documents reads and writes the rows of all tables of documents. Its errors are those of
// [registry.Table].
type Documents interface {
	PutDocument(ctx context.Context, kind, name, body string) error
	GetDocument(ctx context.Context, kind, name string) (body string, err error)
	// ListDocuments returns up to limit rows after a name, in byte order of their names.
	ListDocuments(ctx context.Context, kind, after string, limit int) ([]DocumentRow, error)
	DeleteDocument(ctx context.Context, kind, name string) error
}

// CountedDocuments are rows that can be counted by the beginning of their names.
type CountedDocuments interface {
	Documents
	// CountDocuments counts the rows whose names are between two, up to most.
	CountDocuments(ctx context.Context, kind, after, before string, most int) (int, error)
	// DeleteDocumentWith deletes a row if it has this body, and reports whether it did.
	DeleteDocumentWith(ctx context.Context, kind, name, body string) (bool, error)
}

// DocumentRow is a row without its kind.
type DocumentRow struct {
	Name string
	Body string // JSON
}

// The kinds of documents.
const (
	nodeTypeKind   = "node type"
	runtimeKind    = "runtime"
	webhookKind    = "webhook"
	deliveryKind   = "delivery"
	checkpointKind = "checkpoint"
	damageKind     = "damage"
	scrubKind      = "scrub"
	replicaKind    = "replica"
	markKind       = "replica mark"
	listKind       = "restriction list"
	trustKind      = "trust bundle"
	nodeReportKind = "node report"
	adverseKind    = "adverse evidence"
)

// LastingKinds are the kinds of documents that users made or that must not be lost. The others
// can be found out again.
func LastingKinds() []string {
	return []string{nodeTypeKind, runtimeKind, webhookKind, deliveryKind, listKind, trustKind, adverseKind, checkpointKind}
}

// NodeTypes is the table of named nodes.
func NodeTypes(d Documents) storage.NodeTypes { return table[artifact.Node]{d, nodeTypeKind} }

// Runtimes is the table of named runtimes.
func Runtimes(d Documents) storage.Runtimes { return table[artifact.Runtime]{d, runtimeKind} }

// Webhooks is the table of registered webhooks.
func Webhooks(d Documents) storage.Webhooks { return table[storage.Webhook]{d, webhookKind} }

// Deliveries is the table of the delivery states of webhooks.
func Deliveries(d Documents) storage.Deliveries { return table[storage.Delivery]{d, deliveryKind} }

// Checkpoints is the table of signed checkpoints of the history.
func Checkpoints(d Documents) trust.Checkpoints {
	return table[trust.KeptCheckpoint]{d, checkpointKind}
}

// Damages is the table of known damage.
func Damages(d Documents) storage.Damages { return table[storage.Damage]{d, damageKind} }

// ScrubStates is the table of the scrubber's progress.
func ScrubStates(d Documents) storage.ScrubStates { return table[storage.ScrubState]{d, scrubKind} }

// Replicas is the table of replicas.
func Replicas(d Documents) storage.Replicas { return table[storage.Replica]{d, replicaKind} }

// ReplicaMarks is the table of the marks of replicas.
func ReplicaMarks(d Documents) storage.ReplicaMarks {
	return table[storage.ReplicaMark]{d, markKind}
}

// RestrictionBundles is the table of signed restriction lists.
func RestrictionBundles(d Documents) storage.RestrictionBundles {
	return table[storage.RestrictionBundle]{d, listKind}
}

// TrustBundles is the table of signed trust bundles.
func TrustBundles(d Documents) storage.TrustBundles {
	return table[storage.TrustBundleDocument]{d, trustKind}
}

// NodeReports is the table of what nodes reported.
func NodeReports(d CountedDocuments) storage.NodeReports {
	return countedTable[storage.NodeReport]{table[storage.NodeReport]{d, nodeReportKind}, d}
}

// countedTable is a table with counts.
type countedTable[T any] struct {
	table[T]
	counted CountedDocuments
}

// CountNames counts the documents whose names begin with prefix.
func (t countedTable[T]) CountNames(ctx context.Context, prefix string, most int) (int, error) {
	return t.counted.CountDocuments(ctx, t.kind, prefix, prefix+string(utf8.MaxRune), most)
}

// DeleteSame deletes a document if it is still the one that was read.
func (t countedTable[T]) DeleteSame(ctx context.Context, read registry.Named[T]) (bool, error) {
	body, err := json.Marshal(read.Document)
	if err != nil {
		return false, registry.Errorf(registry.CodeInvalid, "%s %s: %w", t.kind, read.Name, err)
	}
	return t.counted.DeleteDocumentWith(ctx, t.kind, read.Name, string(body))
}

// table stores the documents of one kind as JSON.
type table[T any] struct {
	rows Documents
	kind string
}

// Put stores a document.
func (t table[T]) Put(ctx context.Context, name string, document T) error {
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s %s: %w", t.kind, name, err)
	}
	return t.rows.PutDocument(ctx, t.kind, name, string(body))
}

// Get returns a document.
func (t table[T]) Get(ctx context.Context, name string) (document T, err error) {
	body, err := t.rows.GetDocument(ctx, t.kind, name)
	if err != nil {
		return document, err
	}
	return t.decode(name, body)
}

// List returns a page of documents.
func (t table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	rows, err := t.rows.ListDocuments(ctx, t.kind, after, limit)
	if err != nil {
		return nil, err
	}
	return Decode(rows, func(row DocumentRow) (registry.Named[T], error) {
		document, err := t.decode(row.Name, row.Body)
		return registry.Named[T]{Name: row.Name, Document: document}, err
	})
}

// Delete deletes a document.
func (t table[T]) Delete(ctx context.Context, name string) error {
	return t.rows.DeleteDocument(ctx, t.kind, name)
}

func (t table[T]) decode(name, body string) (document T, err error) {
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		return document, registry.Errorf(registry.CodeInternal, "%s %s: its stored document is damaged: %w", t.kind, name, err)
	}
	return document, nil
}
