package storage

import (
	"context"
	"iter"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Rows reads all documents of a table after a name ("" for all) in the order of their names, page by page. It ends with the first error.
func Rows[T any](ctx context.Context, t registry.Table[T], after string) iter.Seq2[registry.Named[T], error] {
	return func(yield func(registry.Named[T], error) bool) {
		for {
			page, err := t.List(ctx, after, MaxPage)
			if err != nil {
				yield(registry.Named[T]{}, err)
				return
			}
			for _, row := range page {
				if after = row.Name; !yield(row, nil) {
					return
				}
			}
			if len(page) < MaxPage {
				return
			}
		}
	}
}

// NodeTypes stores nodes by name, so that a scheduler can ask for "g6.xlarge".
type NodeTypes = registry.Table[artifact.Node]

// Runtimes stores the software of serving containers by name, such as
// "nvcr.io/nvidia/tritonserver:26.10-py3".
type Runtimes = registry.Table[artifact.Runtime]

// RestrictionBundle is a signed restriction list as it is stored.
type RestrictionBundle struct {
	Bundle []byte `json:"bundle"`
}

// RestrictionBundles stores signed restriction lists by the digest of their bundles. A list stays
// there when the next one is in force.
type RestrictionBundles = registry.Table[RestrictionBundle]

// TrustBundleDocument is a signed trust bundle as it is stored.
type TrustBundleDocument struct {
	Bundle []byte `json:"bundle"`
}

// TrustBundles stores signed trust bundles by their digest. Old ones stay.
type TrustBundles = registry.Table[TrustBundleDocument]
