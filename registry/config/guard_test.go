package config_test

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// open opens a registry in memory.
func open(t *testing.T) registrytest.Registry {
	t.Helper()
	db, blobs := mem.New(), mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	return registrytest.Registry{Interface: svc, Parts: content, Keys: keys}
}

// A process whose configuration is not the agreed one changes nothing and resolves nothing, by
// any way in. It still tells what it knows.
func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	const model = registrytest.Model
	differs := func(context.Context) error { return registry.Errorf(registry.CodeUnavailable, "it differs") }
	agreed := func(context.Context) error { return nil }
	resolve := func(ctx context.Context, r api.Interface) error {
		_, err := r.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: model, Node: registrytest.Node("v4")})
		return err
	}
	promote := func(dry bool) func(context.Context, api.Interface) error {
		return func(ctx context.Context, r api.Interface) error {
			_, err := r.Promote(ctx, api.PromoteRequest{Model: model, Ref: "9.9.9", DryRun: dry})
			return err
		}
	}
	for name, c := range map[string]struct {
		call      func(context.Context, api.Interface) error
		writes    bool // else it resolves
		otherwise registry.Code
	}{
		"publish": {func(ctx context.Context, r api.Interface) error {
			_, err := r.Publish(ctx, api.Publication{Model: model, Release: "sha256:" + registry.Digest(strings.Repeat("a", 64))})
			return err
		}, true, registry.CodeNotFound},
		"attach": {func(ctx context.Context, r api.Interface) error {
			_, err := r.Attach(ctx, api.Attachment{Environment: "staging", Model: model,
				Subject: "sha256:" + registry.Digest(strings.Repeat("a", 64)), Bundle: []byte("none")})
			return err
		}, true, registry.CodeNotFound},
		"promote":         {promote(false), true, registry.CodeNotFound},
		"promote dry run": {promote(true), false, registry.CodeNotFound},
		"rollback": {func(ctx context.Context, r api.Interface) error {
			_, err := r.Rollback(ctx, api.RollbackRequest{Environment: "prod", Model: model, Reason: "broken"})
			return err
		}, true, registry.CodeNotFound},
		"hold": {func(ctx context.Context, r api.Interface) error {
			return r.SetHold(ctx, "prod", "no/such", "wait")
		},
			true, registry.CodeNotFound},
		"release hold": {func(ctx context.Context, r api.Interface) error {
			return r.ReleaseHold(ctx, api.HoldRelease{Environment: "prod", Model: model, Reason: "go on"})
		},
			true, registry.CodeNotFound},
		"accept history": {func(ctx context.Context, r api.Interface) error {
			return r.AcceptHistory(ctx, "prod", model, "known")
		},
			true, registry.CodeInvalid},
		"restrict": {func(ctx context.Context, r api.Interface) error {
			_, err := r.Restrict(ctx, "nowhere", []byte("none"))
			return err
		},
			true, registry.CodeNotFound},
		"publish trust": {func(ctx context.Context, r api.Interface) error {
			_, err := r.PublishTrust(ctx, []byte("none"))
			return err
		},
			true, registry.CodeUnavailable},
		"restrictions": {func(ctx context.Context, r api.Interface) error {
			_, err := r.Restrictions(ctx, "prod")
			return err
		},
			false, ""},
		"resolve": {resolve, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := open(t)
			inner.Promoted(t, registrytest.Build{})
			both := map[bool]func(context.Context) error{true: differs, false: agreed}
			if err := c.call(t.Context(), config.Registry(inner.Interface, both[c.writes],
				both[!c.writes])); registry.CodeOf(err) != registry.CodeUnavailable {
				t.Errorf("where it is refused: error %v, want CodeUnavailable", err)
			}
			err := c.call(t.Context(), config.Registry(inner.Interface, both[!c.writes], both[c.writes]))
			if got := registry.CodeOf(err); got != c.otherwise && (err != nil || c.otherwise != "") {
				t.Errorf("where it is not refused: error %v (%s), want what the registry says, %q", err, got, c.otherwise)
			}
		})
	}
}

// What a process tells of catalog and content does not depend on its configuration.
func TestRegistryReads(t *testing.T) {
	t.Parallel()
	const model = registrytest.Model
	inner := open(t)
	release := inner.Promoted(t, registrytest.Build{})
	differs := func(context.Context) error { return registry.Errorf(registry.CodeUnavailable, "it differs") }
	r := config.Registry(inner.Interface, differs, differs)
	for name, read := range map[string]func(context.Context) (int, error){
		"environments": func(ctx context.Context) (int, error) { es, err := r.Environments(ctx); return len(es.List), err },
		"trust bundle": func(ctx context.Context) (int, error) {
			_, err := r.TrustBundle(ctx)
			if registry.HasCode(err, registry.CodeNotFound) {
				err = nil // none was published
			}
			return 1, err
		},
		"heads": func(ctx context.Context) (int, error) { all, err := r.Heads(ctx, "", ""); return len(all), err },
		"history": func(ctx context.Context) (int, error) {
			all, err := r.History(ctx, history.HistoryQuery{Limit: 9})
			return len(all), err
		},
		"release": func(ctx context.Context) (int, error) {
			one, err := r.Release(ctx, "prod", model, "")
			return len(one.Engines), err
		},
		"claims": func(ctx context.Context) (int, error) {
			all, _, err := r.Claims(ctx, "prod", release)
			return len(all), err
		},
		"engine": func(ctx context.Context) (int, error) {
			one, err := r.Engine(ctx, "prod", model, release.Engines[0].Digest)
			return len(one.Digest), err
		},
		"models": func(ctx context.Context) (int, error) {
			all, err := r.Models(ctx, "", "", 9)
			return len(all.Items), err
		},
		"releases": func(ctx context.Context) (int, error) {
			all, err := r.Releases(ctx, "prod", model, "", 9)
			return len(all.Items), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n, err := read(t.Context()); err != nil || n == 0 {
				t.Errorf("%d found, error %v; want what the registry knows", n, err)
			}
		})
	}
	if faults, err := r.HistoryFaults(t.Context()); err != nil || len(faults) != 0 {
		t.Errorf("history faults: %v, error %v; want none", faults, err)
	}
}
