package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// The rest of what a service asks, of which a call may fail.
type (
	faultyStates  struct{ faultyCatalog }
	faultyRecords struct {
		history.HistoryIndex
		*faults
	}
	faultyListing struct {
		storage.Listing
		*faults
	}
	faultyParts     struct{ faultyContent }
	faultyManifests struct {
		storage.Manifests
		*faults
	}
)

func (m faultyManifests) Manifest(ctx context.Context, repository string, d registry.Digest) (storage.Manifest, error) {
	return read(m.faults, func() (storage.Manifest, error) { return m.Manifests.Manifest(ctx, repository, d) })
}

func (c faultyStates) ModelState(ctx context.Context, environment, model string) (history.ModelState, error) {
	return read(c.faults, func() (history.ModelState, error) { return c.Catalog.ModelState(ctx, environment, model) })
}

func (c faultyStates) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	return read(c.faults, func() ([]history.Head, error) { return c.Catalog.Heads(ctx, environment, model) })
}

func (r faultyRecords) Recorded(ctx context.Context, model string, bundles []registry.Digest) (map[registry.Digest]history.Record, error) {
	return read(r.faults, func() (map[registry.Digest]history.Record, error) {
		return r.HistoryIndex.Recorded(ctx, model, bundles)
	})
}

func (r faultyRecords) Reindex(ctx context.Context, model string) error {
	return callErr(r.faults, func() error { return r.HistoryIndex.Reindex(ctx, model) })
}

func (l faultyListing) ModelPage(ctx context.Context, environment, after string, limit int) ([]history.Head, error) {
	return read(l.faults, func() ([]history.Head, error) { return l.Listing.ModelPage(ctx, environment, after, limit) })
}

func (l faultyListing) TagPage(ctx context.Context, repository, artifactType, after string, limit int) ([]storage.Tagged, error) {
	return read(l.faults, func() ([]storage.Tagged, error) {
		return l.Listing.TagPage(ctx, repository, artifactType, after, limit)
	})
}

func (c faultyParts) Engine(ctx context.Context, repository string, d registry.Digest) (artifact.Engine, error) {
	return read(c.faults, func() (artifact.Engine, error) { return c.Content.Engine(ctx, repository, d) })
}

func (c faultyParts) Bundle(ctx context.Context, repository string, d registry.Digest) (evidence.Bundle, error) {
	return read(c.faults, func() (evidence.Bundle, error) { return c.Content.Bundle(ctx, repository, d) })
}

// faultyAll is a world in which each call of every part may be made to fail.
func faultyAll(t *testing.T, edits ...func(c *backend.Backend)) (*world, *faults) {
	t.Helper()
	w, f := faulty(t, edits...)
	catalog, _ := w.config.Catalog.(faultyCatalog)
	content, _ := w.config.Content.(faultyContent)
	w.config.Catalog, w.config.Content = faultyStates{catalog}, faultyParts{content}
	w.config.Manifests = faultyManifests{w.config.Manifests, f}
	w.config.Records, w.config.Listing = faultyRecords{w.config.Records, f}, faultyListing{w.config.Listing, f}
	w.serve(t)
	return w, f
}

// faultyGuard is a guard of which a call may fail.
func (w *world) faultyGuard() service.Guard {
	g := w.guard()
	g.Manifests, g.Catalog, g.Records = w.config.Manifests, w.config.Catalog, w.config.Records
	return g
}

// kept is nil for the refusal of a guard to delete what is in use.
func kept(err error) error {
	if registry.HasCode(err, registry.CodePolicy) {
		return nil
	}
	if err == nil {
		return errors.New("it was deleted, want it kept")
	}
	return err
}

// Whichever call fails, the caller hears of it: nothing that could not be read is taken for
// nothing that is there, and nothing that was not written for done.
func TestEveryFaultIsHeardOf(t *testing.T) {
	t.Parallel()
	const model = registrytest.Model
	for name, c := range map[string]struct {
		calls int // at least so many
		do    func(ctx context.Context, w *world, r artifact.Release) error
	}{
		"heads": {1, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Heads(ctx, "", "")
			return err
		}},
		"history": {1, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.History(ctx, history.HistoryQuery{})
			return err
		}},
		"release": {2, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Release(ctx, "prod", model, "")
			return err
		}},
		"claims": {10, func(ctx context.Context, w *world, r artifact.Release) error {
			_, _, err := w.Claims(ctx, "prod", r)
			return err
		}},
		"models": {1, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Models(ctx, "", "", 0)
			return err
		}},
		"releases": {1, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Releases(ctx, "prod", model, "", 0)
			return err
		}},
		"engine": {1, func(ctx context.Context, w *world, r artifact.Release) error {
			_, err := w.Engine(ctx, "prod", model, r.Engines[0].Digest)
			return err
		}},
		"bundle": {1, func(ctx context.Context, w *world, r artifact.Release) error {
			_, err := w.Interface.Bundle(ctx, "prod", model, r.Engines[0].Digest) // an engine is none
			if registry.HasCode(err, registry.CodeNotFound) || registry.HasCode(err, registry.CodeInvalid) {
				return nil
			}
			return err
		}},
		"resolve": {10, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: model, Node: registrytest.Node("v3")})
			return err
		}},
		"replay": {20, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.service.Replay(ctx, w.service)
			return err
		}},
		"history faults": {10, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.HistoryFaults(ctx)
			return err
		}},
		"head faults": {5, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.service.HeadFaults(ctx)
			return err
		}},
		"promote dry run": {10, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Promote(ctx, api.PromoteRequest{Model: model, DryRun: true})
			return err
		}},
		"promote again": {10, func(ctx context.Context, w *world, _ artifact.Release) error {
			_, err := w.Promote(ctx, api.PromoteRequest{Model: model})
			return err
		}},
		"publish again": {2, func(ctx context.Context, w *world, r artifact.Release) error {
			_, err := w.Publish(ctx, api.Publication{Model: model, Release: r.Digest})
			return err
		}},
		"publish": {3, func(ctx context.Context, w *world, _ artifact.Release) error {
			version := fmt.Sprintf("2.0.%d", w.last(t))
			_, err := w.Publish(ctx, api.Publication{Model: model, Release: registrytest.Build{Version: version, Salt: version}.Store(t, w.Parts)})
			return err
		}},
		"hold": {2, func(ctx context.Context, w *world, _ artifact.Release) error {
			return w.SetHold(ctx, "prod", model, "wait")
		}},
		"release hold": {3, func(ctx context.Context, w *world, _ artifact.Release) error {
			return w.ReleaseHold(ctx, api.HoldRelease{Environment: "prod", Model: model, Reason: "go on"})
		}},
		"delete an engine": {2, func(ctx context.Context, w *world, r artifact.Release) error {
			return kept(w.faultyGuard().DeleteManifest(ctx, "staging/"+model, r.Engines[0].Digest))
		}},
		"delete evidence": {3, func(ctx context.Context, w *world, r artifact.Release) error {
			all, err := w.db.Referrers(ctx, "staging/"+model, r.Engines[0].Digest, "", "")
			if err != nil {
				return err
			}
			return kept(w.faultyGuard().DeleteManifest(ctx, "staging/"+model, all[0].Digest))
		}},
		"delete junk": {4, func(ctx context.Context, w *world, r artifact.Release) error {
			bundle := w.Bundle(t, registrytest.Stranger, evidence.PredicateQuarantine, struct{}{}, r.Digest)
			stored, err := w.Parts.(storage.Content).PutEvidence(ctx, "staging/"+model, evidence.Bundle{Data: bundle}, r.Subjects()[:1])
			if err != nil {
				return err
			}
			return w.faultyGuard().DeleteManifest(ctx, "staging/"+model, stored[0])
		}},
		"delete a tag": {1, func(ctx context.Context, w *world, _ artifact.Release) error {
			return kept(w.faultyGuard().DeleteTag(ctx, "staging/"+model, artifact.HeadTag))
		}},
		"delete bytes": {1, func(ctx context.Context, w *world, r artifact.Release) error {
			return kept(w.faultyGuard().RemoveBlob(ctx, "staging/"+model, r.Digest))
		}},
		"rollback dry run": {10, func(ctx context.Context, w *world, _ artifact.Release) error {
			p, err := w.Rollback(ctx, api.RollbackRequest{Environment: "prod", Model: model, Reason: "slow", DryRun: true})
			if strings.Contains(fmt.Sprint(p.Warnings), errInjected.Error()) {
				return errInjected // warnings never stop a rollback
			}
			return err
		}},
	} {
		for where, edits := range map[string][]func(*backend.Backend){"here": nil, "on another registry": {external("prod")}} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				w, f := faultyAll(t, edits...)
				w.Promoted(t, registrytest.Build{Version: "0.9.0", Salt: "a"})
				r := w.Promoted(t, registrytest.Build{})
				at := 1
				for ; ; at++ {
					if name == "release hold" {
						must(t, w.SetHold(t.Context(), "prod", model, "wait"))
					}
					f.reset(at, false)
					err := c.do(t.Context(), w, r)
					happened := f.calls >= at
					f.reset(0, false)
					if happened != errors.Is(err, errInjected) {
						t.Errorf("call %d failed: %t, and the error is %v", at, happened, err)
					}
					if !happened {
						break
					}
				}
				if at-1 < c.calls {
					t.Errorf("%d calls were made to fail, want at least %d", at-1, c.calls)
				}
				w.chained(t)
			})
		}
	}
}
