package postgres_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/postgres"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// catalog is one in memory, with its tables.
type catalog struct {
	*mem.DB
	nodeTypes   storage.NodeTypes
	runtimes    storage.Runtimes
	webhooks    storage.Webhooks
	deliveries  storage.Deliveries
	lists       storage.RestrictionBundles
	checkpoints trust.Checkpoints
	trust       storage.TrustBundles
}

func (c catalog) CatalogIdentity(context.Context) (storage.CatalogIdentity, error) {
	return storage.CatalogIdentity{ID: "original", Origins: []string{"grandparent"}}, nil
}

func (c catalog) NodeTypes() storage.NodeTypes { return c.nodeTypes }

func (c catalog) Runtimes() storage.Runtimes { return c.runtimes }

func (c catalog) Webhooks() storage.Webhooks { return c.webhooks }

func (c catalog) Deliveries() storage.Deliveries { return c.deliveries }

func (c catalog) RestrictionBundles() storage.RestrictionBundles { return c.lists }

func (c catalog) Checkpoints() trust.Checkpoints { return c.checkpoints }

func (c catalog) TrustBundles() storage.TrustBundles { return c.trust }

// full is a catalog that has something of everything, as of some time ago.
func full(t *testing.T) catalog {
	t.Helper()
	ago := time.Date(2025, 3, 1, 12, 0, 0, 123456000, time.UTC)
	c := catalog{mem.New(), mem.NewTable[artifact.Node](), mem.NewTable[artifact.Runtime](), mem.NewTable[storage.Webhook](),
		mem.NewTable[storage.Delivery](), mem.NewTable[storage.RestrictionBundle](),
		mem.NewTable[trust.KeptCheckpoint](), mem.NewTable[storage.TrustBundleDocument]()}
	c.Now = func() time.Time { return ago }
	ctx, d := t.Context(), func(text string) registry.Digest { return digest.FromString(text) }
	token, _, err := access.Mint("ci",
		[]storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "prod", Model: "**"}}, ago, ago.Add(time.Hour))
	gone, _, minted := access.Mint("gone", token.Grants, ago, time.Time{})
	event := func(kind history.EventKind, environment, version, reason string) history.Event {
		return history.Event{Time: ago, Kind: kind, Environment: environment,
			Model: "vision/digits", Version: version, Release: d(version), Reason: reason}
	}
	apply := func(c catalog, change storage.Change) error { _, err := c.Apply(ctx, change); return err }
	for n, err := range []error{
		err, minted,
		c.AddBlob(ctx, "staging/vision/digits", d("blob"), 4),
		c.PutManifest(ctx, "staging/vision/digits", storage.Manifest{Digest: d("1"), MediaType: "m", Size: 1,
			Derived: artifact.Derived{ArtifactType: "a", Annotations: map[string]string{"k": "v", "NUL": "no"}}}),
		c.PutManifest(ctx, "staging/vision/digits", storage.Manifest{Digest: d("2"),
			MediaType: "m", Size: 2, Derived: artifact.Derived{ArtifactType: "b", Subject: d("1")}}),
		c.SetTag(ctx, "staging/vision/digits", "1.0.0", d("1")), c.SetTag(ctx, "staging/vision/digits", "current", d("1")),
		apply(c, storage.Change{Event: event(history.EventPublish, "staging", "1", ""),
			DecisionBasis: registrytest.HeadAlone("staging", "vision/digits", ""), Move: &storage.HeadMove{}}),
		apply(c, storage.Change{Event: event(history.EventPromote, "prod", "1", ""),
			DecisionBasis: registrytest.HeadAlone("prod", "vision/digits", ""), Move: &storage.HeadMove{}}),
		apply(c, storage.Change{Event: event(history.EventRollback, "prod", "0", "NUL \x00, \"quoted\" and ü"),
			DecisionBasis: registrytest.HeadAlone("prod", "vision/digits", d("1")), Move: &storage.HeadMove{Hold: "it was slow"}}),
		apply(c, storage.Change{Event: history.Event{Time: ago, Kind: history.EventAttach,
			Environment: "prod", Model: "vision/digits", PredicateType: evidence.PredicateQuarantine},
			Keeps: []evidence.AdverseEvidence{{Environment: "prod", Model: "vision/digits", Subject: d("1"), Bundle: d("2"), Data: []byte("quarantine")}}}),
		c.Begin(ctx, history.Intent{Environment: "prod", Model: "vision/digits", From: "staging", Release: d("1"), Begun: ago}),
		c.CreateToken(ctx, token), c.CreateToken(ctx, gone),
		c.RevokeToken(ctx, gone.ID, ago.Add(time.Minute)), c.UseToken(ctx, token.ID, ago.Add(time.Second)),
		c.nodeTypes.Put(ctx, "g6.xlarge", artifact.Node{V: 1, OS: "linux"}), c.runtimes.Put(ctx,
			"nvcr.io/x:1", artifact.Runtime{V: 1, Runtimes: map[string]string{"onnxruntime": "1"}}),
		c.webhooks.Put(ctx, "w", storage.Webhook{URL: "https://example.com", Secret: []byte("secret"), Created: ago}),
		c.deliveries.Put(ctx, "w", storage.Delivery{Delivered: 2}),
		c.lists.Put(ctx, string(d("list")), storage.RestrictionBundle{Bundle: []byte("list")}),
		c.trust.Put(ctx, string(d("trust")), storage.TrustBundleDocument{Bundle: []byte("trust")}),
		c.checkpoints.Put(ctx, "0000000000000000003", trust.KeptCheckpoint{Size: 3, Note: "signed"}),
	} {
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	for i := range 101 { // two pages
		recipe := storage.Recipe{Digest: d(fmt.Sprint("layer ", i)), Size: 5, Pieces: []storage.Piece{{Literal: []byte{1}}, {Digest: d("blob"), Size: 4}}}
		if added, err := c.AddRecipe(ctx, recipe); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	return c
}

// all is everything that is in a catalog, by what it is.
func all(t *testing.T, c postgres.Source) map[string]any {
	t.Helper()
	ctx := t.Context()
	got := make(map[string]any)
	keep := func(what string, value any, err error) {
		t.Helper()
		if err != nil || reflect.ValueOf(value).Len() == 0 {
			t.Errorf("%s: %v, error %v", what, value, err)
		}
		got[what] = value
	}
	repositories, err := c.Repositories(ctx)
	keep("repositories", repositories, err)
	for _, repository := range repositories {
		held, err := c.Records(ctx, repository)
		keep(repository, held, err)
	}
	composed, err := c.RecipeDigests(ctx, "", 1000)
	keep("composed", composed, err)
	for _, d := range composed {
		recipe, err := c.Recipe(ctx, d)
		keep("recipe of "+string(d), recipe.Pieces, err)
	}
	unheld, err := c.(storage.MarkStore).WithoutRepository(ctx, []registry.Digest{digest.FromString("blob"), digest.FromString("nothing")})
	keep("not held", unheld, err)
	manifests, err := collected(c.AllManifests(ctx))
	keep("manifests", manifests, err)
	events, err := collected(c.History(ctx, history.HistoryQuery{}))
	keep("history", events, err)
	heads, err := c.Heads(ctx, "", "")
	keep("heads", heads, err)
	standing, err := c.ModelState(ctx, "prod", "vision/digits")
	keep("restrictions", []int64{standing.Restrictions}, err)
	intents, err := c.Pending(ctx)
	keep("intents", intents, err)
	tokens, err := c.ListTokens(ctx)
	keep("tokens", tokens, err)
	nodeTypes, err := c.NodeTypes().List(ctx, "", 10)
	keep("node types", nodeTypes, err)
	runtimes, err := c.Runtimes().List(ctx, "", 10)
	keep("runtimes", runtimes, err)
	webhooks, err := c.Webhooks().List(ctx, "", 10)
	keep("webhooks", webhooks, err)
	deliveries, err := c.Deliveries().List(ctx, "", 10)
	keep("deliveries", deliveries, err)
	lists, err := c.RestrictionBundles().List(ctx, "", 10)
	keep("restriction lists", lists, err)
	checkpoints, err := c.Checkpoints().List(ctx, "", 10)
	keep("checkpoints", checkpoints, err)
	trust, err := c.TrustBundles().List(ctx, "", 10)
	keep("trust bundles", trust, err)
	adverse, err := c.AdverseTable().List(ctx, "", 10)
	keep("adverse evidence", adverse, err)
	return got
}

func collected[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// A catalog that is taken over is what it was, to the microsecond, and goes on.
func TestImport(t *testing.T) {
	t.Parallel()
	from := full(t)
	url := pgtest.Shared(t).Database(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.RefuseUsed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Import(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	want, got := all(t, from), all(t, db)
	for what := range want {
		if !reflect.DeepEqual(got[what], want[what]) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", what, got[what], want[what])
		}
	}
	if id, err := db.CatalogIdentity(t.Context()); err != nil || !slices.Equal(id.Origins, []string{"original", "grandparent"}) {
		t.Errorf("origins %v (%v), want the original and its own origins", id.Origins, err)
	}
	next, err := db.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventAttach, Environment: "prod", Model: "vision/digits"}})
	if err != nil || next.Seq != 5 {
		t.Errorf("what comes next is %+v, error %v", next, err)
	}
	for what, err := range map[string]error{"import": db.Import(t.Context(), from), "look": db.RefuseUsed(t.Context())} {
		if registry.CodeOf(err) != registry.CodeConflict {
			t.Errorf("%s of one that is used: %v", what, err)
		}
	}
}

// bent has a history in which a row was changed.
type bent struct{ catalog }

func (b bent) History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for e, err := range b.catalog.History(ctx, q) {
			if e.Seq == 2 {
				e.Reason = "changed"
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Whatever is wrong, nothing is taken over.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	unstorable := full(t)
	if err := unstorable.webhooks.Put(t.Context(), "x\x00", storage.Webhook{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from postgres.Source
		code registry.Code
	}{"a broken chain": {bent{full(t)}, registry.CodeTrust}, "a text that no column holds": {unstorable, registry.CodeInvalid}} {
		db, err := postgres.Open(t.Context(), server.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Import(t.Context(), c.from); registry.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if err := db.RefuseUsed(t.Context()); err != nil {
			t.Errorf("%s left something: %v", name, err)
		}
		_ = db.Close()
	}
	// Anything at all makes a database used.
	for what, use := range map[string]func(db *postgres.DB) error{
		"a blob":  func(db *postgres.DB) error { return db.AddBlob(t.Context(), "r/m", digest.FromString("x"), 1) },
		"a table": func(db *postgres.DB) error { return db.Runtimes().Put(t.Context(), "r", artifact.Runtime{}) },
		"an event": func(db *postgres.DB) error {
			_, err := db.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventAttach}})
			return err
		},
	} {
		db, err := postgres.Open(t.Context(), server.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := use(db); err != nil {
			t.Fatal(err)
		}
		if err := db.Import(t.Context(), full(t)); registry.CodeOf(err) != registry.CodeConflict {
			t.Errorf("%s: %v", what, err)
		}
		_ = db.Close()
	}
}
