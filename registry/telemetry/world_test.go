package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/telemetry"
)

// world is a service in memory that is observed at every port.
type world struct {
	registrytest.Registry
	telemetry *telemetry.Telemetry
	db        *mem.DB
	blobs     *mem.Blobs
	refs      storage.RepositoryRecords
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{telemetry: telemetry.New("0.0.0", nil), db: mem.New(), blobs: mem.NewBlobs()}
	w.refs = w.telemetry.Refs(w.db)
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) {
		return oci.Local(w.blobs, w.refs, name), nil
	}, oci.Options{})
	w.Parts, w.Keys = content, registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: w.telemetry.Catalog(w.db), Records: w.telemetry.Records(w.db),
		Listing: w.db, Intents: w.db, Content: content, Verify: w.Keys.Verify, Sign: w.Keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Interface = w.telemetry.Registry(svc)
	return w
}

// scrape reads all samples, by name and labels as they are written.
func scrape(t *testing.T, of *telemetry.Telemetry) map[string]float64 {
	t.Helper()
	recorder := httptest.NewRecorder()
	of.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code != 200 {
		t.Fatalf("status %d, %v", recorder.Code, err)
	}
	samples := make(map[string]float64)
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			name += "}"
		}
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		samples[name] = n
	}
	return samples
}

// want compares some samples.
func want(t *testing.T, of *telemetry.Telemetry, samples map[string]float64) {
	t.Helper()
	got := scrape(t, of)
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		if got[name] != samples[name] {
			t.Errorf("%s is %v, want %v", name, got[name], samples[name])
		}
	}
}

// Who is observed does all that he did before.
func TestInterface(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return setup(t).Registry })
}

// observedStore is a store whose ports are observed.
type observedStore struct {
	storage.RepositoryRecords
	storage.Catalog
	storage.Latest
	history.HistoryIndex
	storage.Listing
	storage.Intents
	storage.ReferrerCounts
	stored *mem.DB
}

// NodeTypes is the table of the store, which is not observed.
func (s observedStore) NodeTypes() storage.NodeTypes { return s.stored.NodeTypes() }

// LastEvent is that of the observed Latest; the catalog has one too.
func (s observedStore) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	return s.Latest.LastEvent(ctx, environment, model)
}

// AdverseChanges is that of the observed Latest; the catalog has one too.
func (s observedStore) AdverseChanges(ctx context.Context, model string) (int64, error) {
	return s.Latest.AdverseChanges(ctx, model)
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(*testing.T) registrytest.Store {
		db, observer := mem.New(), telemetry.New("0.0.0", nil)
		return observedStore{observer.Refs(db), observer.Catalog(db), observer.Latest(db), observer.Records(db), db, db, db, db}
	})
}

// Names, units and helps are as Prometheus wants them.
func TestMetricsLint(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.telemetry.Collected(telemetry.Collection{}, time.Second, nil)
	w.telemetry.Requests(http.NotFoundHandler(), telemetry.NewRoutes(),
		slog.New(slog.DiscardHandler)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	recorder := httptest.NewRecorder()
	w.telemetry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	problems, err := promlint.New(recorder.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestCollected(t *testing.T) {
	t.Parallel()
	of := telemetry.New("0.0.0", nil)
	of.Collected(telemetry.Collection{Marked: 1, Unmarked: 2, Manifests: 3, Members: 4, Blobs: 5, Leftovers: 6, SkippedRepositories: 7, Bytes: 8},
		time.Second, nil)
	of.Collected(telemetry.Collection{Blobs: 1}, time.Second, registry.Errorf(registry.CodeFull, "no room"))
	want(t, of, map[string]float64{
		`mlpromote_gc_runs_total{result="success"}`: 1, `mlpromote_gc_runs_total{result="full"}`: 1,
		`mlpromote_gc_marks_total{change="marked"}`: 1, `mlpromote_gc_marks_total{change="unmarked"}`: 2,
		`mlpromote_gc_removed_total{kind="manifest"}`: 3, `mlpromote_gc_removed_total{kind="member"}`: 4,
		`mlpromote_gc_removed_total{kind="blob"}`: 6, `mlpromote_gc_removed_total{kind="leftover"}`: 6,
		`mlpromote_gc_removed_bytes_total`: 8, `mlpromote_gc_skipped_repositories`: 7, `mlpromote_gc_duration_seconds_count`: 2,
	})
}

func TestPromotionsAndResolves(t *testing.T) {
	t.Parallel()
	w := setup(t)
	promote := api.PromoteRequest{Model: registrytest.Model}
	release := w.Build(t, registrytest.Build{})
	w.Sign(t, release) // and no report
	if _, err := w.Promote(t.Context(), promote); registry.CodeOf(err) != registry.CodePolicy {
		t.Fatalf("promoted without reports: %v", err)
	}
	w.Prove(t, release)
	dry := promote
	dry.DryRun = true
	for _, r := range []api.PromoteRequest{dry, promote, promote} {
		if _, err := w.Promote(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.Promote(t.Context(), api.PromoteRequest{Model: "nothing"})
	_, _ = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"})
	for _, level := range []string{"v3", "v0"} {
		_, _ = w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node(level)})
	}
	want(t, w.telemetry, map[string]float64{
		`mlpromote_promotions_total{result="success"}`:                         1,
		`mlpromote_promotions_total{result="unchanged"}`:                       1,
		`mlpromote_promotions_total{result="policy"}`:                          1,
		`mlpromote_promotions_total{result="not_found"}`:                       1,
		`mlpromote_policy_refusals_total{requirement="parity"}`:                1,
		`mlpromote_policy_refusals_total{requirement="signature"}`:             0,
		`mlpromote_rollbacks_total{result="not_found"}`:                        1,
		`mlpromote_resolves_total{result="success"}`:                           1,
		`mlpromote_resolves_total{result="no_engine"}`:                         1,
		`mlpromote_build_info{go="` + runtime.Version() + `",version="0.0.0"}`: 1,
	})
	got := scrape(t, w.telemetry)
	for _, operation := range []string{"add_blob", "apply", "blob", "head", "history", "manifest", "put_manifest", "referrers"} {
		if got[`mlpromote_database_duration_seconds_count{operation="`+operation+`"}`] == 0 {
			t.Errorf("no %s was timed", operation)
		}
	}
}
