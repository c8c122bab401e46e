package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// otherRegistry is the registry of prod if the thief may push there.
const otherRegistry = "registry.example.com"

// foreign is what a registry by others has of names. Whoever may push there makes it list other referrers.
type foreign struct {
	storage.RepositoryRecords
	unlisted map[registry.Digest]bool
}

func (f *foreign) Referrers(ctx context.Context, repository string, d registry.Digest, artifactType string,
	after registry.Digest) ([]storage.Manifest, error) {
	for {
		found, err := f.RepositoryRecords.Referrers(ctx, repository, d, artifactType, after)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		after = found[len(found)-1].Digest
		if found = slices.DeleteFunc(found, func(m storage.Manifest) bool { return f.unlisted[m.Digest] }); len(found) > 0 {
			return found, nil
		}
	}
}

// content opens the repositories of a world: those of prod are elsewhere if the thief may push there.
func (w *stolen) content(db *mem.DB, blobs *mem.Blobs) *oci.Store {
	w.foreign = &foreign{mem.New(), make(map[registry.Digest]bool)}
	there := mem.NewBlobs()
	return oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		if w.thief.pushes && strings.HasPrefix(name, "prod/") {
			return oci.Local(there, w.foreign, name), nil
		}
		return oci.Local(blobs, db, name), nil
	}, oci.Options{})
}

// pushing puts prod on another registry if the thief may push there.
func (w *stolen) pushing(c backend.Backend, content *oci.Store) backend.Backend {
	if w.thief.pushes {
		c.Environments.List[1].Registry, c.Mirror = otherRegistry, content
	}
	return c
}

// unlist lets the thief make prod's registry list nothing about a release of those predicate types.
func (w *stolen) unlist(t *testing.T, r artifact.Release, predicateTypes ...string) {
	t.Helper()
	if !w.thief.pushes {
		return
	}
	for _, subject := range r.Subjects() {
		for b, err := range w.store.Evidence(t.Context(), "prod/"+r.Model, subject.Digest) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(predicateTypes, b.PredicateType) {
				w.foreign.unlisted[b.Digest] = true
			}
		}
	}
}

// given reports whether prod gives an engine of a release to a node.
func (w *stolen) given(t *testing.T, r artifact.Release) bool {
	t.Helper()
	answer, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: r.Model, Node: registrytest.Node("v4")})
	return err == nil && answer.Release == r.Digest && answer.Engine != nil
}
