package catalog

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// copyPage is the number of documents that are read at a time.
const copyPage = 100

// Tables are the tables of the documents that must not be lost: those of [LastingKinds].
type Tables interface {
	NodeTypes() storage.NodeTypes
	Runtimes() storage.Runtimes
	Webhooks() storage.Webhooks
	Deliveries() storage.Deliveries
	RestrictionBundles() storage.RestrictionBundles
	TrustBundles() storage.TrustBundles
	AdverseTable() registry.Table[evidence.AdverseEvidence]
	Checkpoints() trust.Checkpoints
}

// PutDocument stores a document as [Documents] does.
type PutDocument func(ctx context.Context, kind, name, body string) error

// CopyTables puts every document of the tables.
func CopyTables(ctx context.Context, from Tables, put PutDocument) error {
	if err := copyTable(ctx, nodeTypeKind, from.NodeTypes(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, runtimeKind, from.Runtimes(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, webhookKind, from.Webhooks(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, deliveryKind, from.Deliveries(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, listKind, from.RestrictionBundles(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, trustKind, from.TrustBundles(), put); err != nil {
		return err
	}
	if err := copyTable(ctx, adverseKind, from.AdverseTable(), put); err != nil {
		return err
	}
	return copyTable(ctx, checkpointKind, from.Checkpoints(), put)
}

func copyTable[T any](ctx context.Context, kind string, from registry.Table[T], put PutDocument) error {
	for after := ""; ; {
		page, err := from.List(ctx, after, copyPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			body, err := json.Marshal(d.Document)
			if err != nil {
				return err
			}
			if err := put(ctx, kind, d.Name, string(body)); err != nil {
				return err
			}
			after = d.Name
		}
		if len(page) < copyPage {
			return nil
		}
	}
}
