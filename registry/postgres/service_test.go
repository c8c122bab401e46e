package postgres

import (
	"context"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// replica is a service over a database, beside others that have the same content. Each
// edit changes the configuration before the service is made.
func replica(t testing.TB, db *DB, content storage.Blobs, keys *registrytest.Keys, edits ...func(*backend.Backend)) registrytest.Registry {
	t.Helper()
	store := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return oci.Local(content, db, name), nil
	}, oci.Options{})
	config := backend.Backend{
		RestrictionBundles: db.RestrictionBundles(),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: store, Mirror: store,
		Tool: evidence.ToolIdentity{Name: "mlpromote", Version: "0.0.0"},
	}
	for _, edit := range edits {
		edit(&config)
	}
	config.Verify, config.Sign = keys.Verify, keys.Sign
	s, err := service.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return registrytest.Registry{Interface: s, Parts: store, Keys: keys}
}

func TestInterface(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry {
		return replica(t, openURL(t, pgtest.Database(t)), mem.NewBlobs(), registrytest.NewKeys(registrytest.RoleKeys()))
	})
}

// meeting is a catalog in which promotions wait for one another before they are applied.
type meeting struct {
	storage.Catalog
	arrive func()
	all    *sync.WaitGroup
}

func (m meeting) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if c.Event.Kind == history.EventPromote {
		m.arrive()
		m.all.Wait()
	}
	return m.Catalog.Apply(ctx, c)
}

// If two replicas promote at once, the loser decides again. With two releases it comes second;
// with one it finds its release promoted.
func TestTwoPromotionsAtOnce(t *testing.T) {
	t.Parallel()
	for name, references := range map[string][]string{"of two releases": {"1.0.0", "1.1.0"}, "of one release": {"1.1.0", "1.1.0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all, done sync.WaitGroup
			all.Add(len(references))
			url, content, keys := pgtest.Database(t), mem.NewBlobs(), registrytest.NewKeys(registrytest.RoleKeys())
			db := openURL(t, url)
			var replicas []registrytest.Registry
			var arrivals []func()
			for range references {
				arrive := sync.OnceFunc(all.Done)
				arrivals = append(arrivals, arrive)
				replicas = append(replicas, replica(t, openURL(t, url), content, keys, func(c *backend.Backend) { c.Catalog = meeting{c.Catalog, arrive, &all} }))
			}
			for _, b := range []registrytest.Build{{}, {Version: "1.1.0", Salt: "b"}} {
				replicas[0].Prove(t, replicas[0].Build(t, b))
			}
			promotions, errs := make([]api.Promotion, len(references)), make([]error, len(references))
			for i, reference := range references {
				done.Go(func() {
					defer arrivals[i]() // where it does not come so far
					promotions[i], errs[i] = replicas[i].Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: reference, Downgrade: true})
				})
			}
			done.Wait()
			if errs[0] != nil || errs[1] != nil {
				t.Fatalf("errors %v, want none", errs)
			}
			want := map[bool]int{true: 1, false: 2}[promotions[0].Unchanged || promotions[1].Unchanged]
			if (want == 1) != (name == "of one release") {
				t.Errorf("the promotions are %+v", promotions)
			}
			head, err := db.Head(t.Context(), "prod", registrytest.Model)
			if err != nil {
				t.Fatal(err)
			}
			for _, tag := range []string{artifact.HeadTag, head.Version} {
				if d, err := db.Tag(t.Context(), registry.Repository("prod", registrytest.Model), tag); err != nil || d != head.Release {
					t.Errorf("tag %s names %s (%v), want the head %s", tag, d, err, head.Release)
				}
			}
			for i, r := range replicas {
				if events, err := r.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote}); err != nil ||
					len(events) != want || events[want-1].Release != head.Release {
					t.Errorf("replica %d sees the promotions %+v in history (error %v), want %d, the last of which is the head %s",
						i, events, err, want, head.Version)
				}
				if pending, err := db.Pending(t.Context()); err != nil || len(pending) != 0 {
					t.Errorf("intents are left: %v (%v)", pending, err)
				}
			}
		})
	}
}
