// Package wiring opens the data directory or a service, and connects databases, storage, keys and trust.
package wiring

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci"
)

// Attached is what is attached to a manifest.
type Attached = oci.Referrer

// Attached lists what is attached to a release and its parts, each once.
func (i *Instance) Attached(ctx context.Context, ref registry.Ref, r artifact.Release) ([]Attached, error) {
	var found []Attached
	seen := make(map[registry.Digest]bool)
	for _, subject := range r.Subjects() {
		for referrer, err := range i.Store.Referrers(ctx, registry.Repository(ref.Environment, ref.Model), subject.Digest) {
			if err != nil {
				return nil, err
			}
			if !seen[referrer.Digest] {
				found, seen[referrer.Digest] = append(found, referrer), true
			}
		}
	}
	return found, nil
}
