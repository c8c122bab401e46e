package main

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/registry/webhook"
)

// storageKind is all that a service keeps.
type storageKind struct {
	names   names
	blobs   storage.Blobs
	uploads storage.Uploads
}

// names is all but bytes.
type names interface {
	storage.RepositoryRecords
	storage.Catalog
	history.HistoryIndex
	storage.Listing
	storage.Intents
	storage.Idempotency
	storage.Deleter
	storage.Tokens
	storage.Secrets
	storage.UploadStates
	storage.CatalogClock
}

func inMemory(*testing.T) storageKind {
	blobs := mem.NewBlobs()
	return storageKind{names: mem.New(), blobs: blobs, uploads: mem.NewUploads(blobs)}
}

func onDisk(t *testing.T) storageKind {
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	blobs := blob.NewDir(dir)
	return storageKind{names: db, blobs: blobs, uploads: blob.NewUploads(blobs, db)}
}

// onObjectStore gives every test a bucket's prefix of its own.
func onObjectStore(t *testing.T) func(*testing.T) storageKind {
	server := registrytest.StartS3Server(t)
	return func(t *testing.T) storageKind {
		config, err := s3.ParseURL(server.URL(strings.ToLower(rand.Text())))
		if err != nil {
			t.Fatal(err)
		}
		bucket, err := s3.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		s := onDisk(t)
		s.blobs, s.uploads = bucket, s3.NewUploads(bucket, s.names)
		return s
	}
}

// TestInterface holds what a client sees of a service against the contract that the
// service itself keeps: releases are read and written over /v2/, all else over REST, and
// both with the token of an administrator.
func TestInterface(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) func(*testing.T) storageKind{
		"memory":       func(*testing.T) func(*testing.T) storageKind { return inMemory },
		"disk":         func(*testing.T) func(*testing.T) storageKind { return onDisk },
		"object store": onObjectStore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return overNetwork(t, store(t)) })
		})
	}
}

// overNetwork serves the storage and gives a client of it.
func overNetwork(t *testing.T, s storageKind) registrytest.Registry {
	t.Helper()
	g, err := authn.New(t.Context(), authn.Config{Tokens: s.names, Secrets: s.names})
	if err != nil {
		t.Fatal(err)
	}
	_, r := network(t, s, g)
	return r
}

// TestPromotionChecker holds what a client sees of the check of a service against the contract that the service keeps.
func TestPromotionChecker(t *testing.T) {
	t.Parallel()
	registrytest.TestPromotionChecker(t, func(t *testing.T) (registrytest.Registry, api.PromotionChecker) {
		r := overNetwork(t, onDisk(t))
		return r, r.Interface.(api.PromotionChecker)
	})
}

// everybody is open access: it asks for no token.
func everybody(t *testing.T) *authn.Authenticator {
	t.Helper()
	none := mem.New()
	g, err := authn.New(t.Context(), authn.Config{Tokens: none, Secrets: none, Open: access.NewOpen(none, func() bool { return false })})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// publishingChain is the chain of registrytest with a key that signs trust bundles.
func publishingChain() policy.Environments {
	chain := registrytest.Chain()
	chain.Configuration = chain.Digest
	const publisher = evidence.RolePublisher
	chain.Trust = append(chain.Trust, trust.TrustEntry{Key: string(publisher), Roles: []evidence.Role{publisher}, Resources: []string{"oci://local/"}})
	return chain
}

// readNoKey gives a text for each key, which no signature is verified by.
func readNoKey(path string) ([]byte, error) { return []byte("key " + path), nil }

// network serves the storage behind an authenticator, and gives where as well.
func network(t *testing.T, s storageKind, g *authn.Authenticator) (url string, r registrytest.Registry) {
	t.Helper()
	chain := publishingChain()
	keys := registrytest.NewKeys(chain.Trust)
	near := oci.New(func(_ context.Context, repository string) (oci.Repository, error) {
		return oci.Local(s.blobs, s.names, repository), nil
	}, oci.Options{})
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		TrustBundles:       mem.NewTable[storage.TrustBundleDocument](), ReadKey: readNoKey,
		KeptCheckpoint: func(context.Context, int64) (trust.KeptCheckpoint, error) {
			return trust.KeptCheckpoint{}, registry.Errorf(registry.CodeNotFound, "none")
		},
		Environments: chain, Catalog: s.names, Records: s.names, Listing: s.names, Intents: s.names, Content: near, Mirror: near,
		Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(bothEndpoints(t, svc, s, g))
	t.Cleanup(listening.Close)
	return listening.URL, clientOf(t, listening, keys, administrator(t, s.names))
}

// administrator makes the token of somebody who may do everything.
func administrator(t *testing.T, tokens storage.Tokens) string {
	t.Helper()
	token, text, err := access.Mint("admin", access.Anonymous().Grants, clock.Now(), time.Time{})
	if err == nil {
		err = tokens.CreateToken(t.Context(), token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func bothEndpoints(t *testing.T, svc *service.Service, s storageKind, g *authn.Authenticator) http.Handler {
	t.Helper()
	api, err := server.New(server.Config{
		Registry: access.Guard(svc), Preview: access.Preview(service.Remember(svc, s.names, 1<<20), svc.Environments), Authorize: access.AllowRoute, History: s.names.History,
		NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](),
		Nodes:      access.GuardNodes(service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: svc, Clock: s.names, Life: time.Hour}),
		Operations: func(context.Context) (api.Operations, error) { return api.Operations{}, nil },
		Webhooks:   mem.NewTable[storage.Webhook](), Deliveries: mem.NewTable[storage.Delivery](), Idempotency: s.names, Tokens: s.names, Configuration: settled{}, Clock: s.names,
		Checkpoints:     checkpointsOf(t, s.names.History),
		CheckWebhookURL: func(url string) error { return webhook.CheckURL(url, false) },
		ReadNode:        node.Parse, CheckNode: node.Check, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := distribution.New(distribution.Config{
		Blobs: s.blobs, Refs: s.names, Deleter: s.names, Uploads: s.uploads,
		Authorize: serving.Authorize(registrytest.Chain()), Challenge: serving.Challenge(g),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", g.API(api))
	mux.Handle("/v2/", g.Registry(content))
	return mux
}

// settled is the configuration of a service whose files always say what was agreed on.
type settled struct{}

func (settled) Status() history.ConfigurationStatus {
	c := history.Configuration{Environments: registrytest.Chain().Digest}
	return history.ConfigurationStatus{State: history.ConfigurationAgreed, Agreed: c, InForce: c, OnDisk: c}
}

func (s settled) Adopt(context.Context, history.Configuration) (history.ConfigurationStatus, error) {
	return s.Status(), nil
}

func clientOf(t *testing.T, listening *httptest.Server, keys *registrytest.Keys, token string) registrytest.Registry {
	t.Helper()
	far := oci.New(func(_ context.Context, repository string) (oci.Repository, error) {
		repo, err := remote.NewRepository(listening.Listener.Addr().String() + "/" + repository)
		if err != nil {
			return nil, err
		}
		repo.PlainHTTP = true
		repo.Client = &auth.Client{ // as stock clients do: a password, for which they get tokens
			Client: listening.Client(), Cache: auth.NewCache(),
			Credential: auth.StaticCredential(listening.Listener.Addr().String(), auth.Credential{Username: "me", Password: token}),
		}
		return repo, nil
	}, oci.Options{})
	service, err := url.Parse(listening.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{URL: listening.URL, Content: far, HTTP: &http.Client{
		Transport: &connect.Authorized{Base: listening.Client().Transport, Service: service, Authorization: "Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	return registrytest.Registry{Interface: c, Parts: far, Keys: keys, Caller: evidence.Person{Principal: "token:admin", Token: "admin"}}
}

// TestTablesOverNetwork holds the tables that a client sees against the same contract.
func TestTablesOverNetwork(t *testing.T) {
	t.Parallel()
	registrytest.TestTables(t, func(t *testing.T) registrytest.Tables {
		c := overNetwork(t, inMemory(t)).Interface.(*client.Client)
		return registrytest.Tables{NodeTypes: c.NodeTypes(), Runtimes: c.Runtimes()}
	})
}

// TestNodeReporterOverNetwork holds the reports of nodes that a client sees against the same contract.
func TestNodeReporterOverNetwork(t *testing.T) {
	t.Parallel()
	registrytest.TestNodeReporter(t, func(t *testing.T) registrytest.NodeReporting {
		r := overNetwork(t, inMemory(t))
		return registrytest.NodeReporting{Registry: r, Nodes: r.Interface.(*client.Client)}
	})
}

// meeting is a catalog in which the first two promotions wait for one another before they
// are applied.
type meeting struct {
	names
	all     *sync.WaitGroup
	arrived *atomic.Int32
}

func (m meeting) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if c.Event.Kind == history.EventPromote && m.arrived.Add(1) <= 2 {
		m.all.Done()
		m.all.Wait()
	}
	return m.names.Apply(ctx, c)
}

// Of two clients that promote at once, the second is decided again on the head that the
// first has moved: both succeed, one after the other, and the history has both.
func TestTwoClientsAtOnce(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) storageKind{"memory": inMemory, "disk": onDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			all.Add(2)
			s := store(t)
			s.names = meeting{s.names, &all, new(atomic.Int32)}
			r := overNetwork(t, s)
			for _, b := range []registrytest.Build{{}, {Version: "1.1.0", Salt: "b"}} {
				r.Prove(t, r.Build(t, b))
			}
			versions := []string{"1.0.0", "1.1.0"}
			errs := make([]error, len(versions))
			var done sync.WaitGroup
			for i, version := range versions {
				done.Go(func() {
					_, errs[i] = r.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: version, Downgrade: true})
				})
			}
			done.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("promotions: %v, want none refused", err)
			}
			var promoted []string
			events, err := r.History(t.Context(), history.HistoryQuery{Environment: "prod", Model: registrytest.Model, Kind: history.EventPromote})
			for _, e := range events {
				promoted = append(promoted, e.Version)
			}
			slices.Sort(promoted)
			if err != nil || !slices.Equal(promoted, versions) {
				t.Fatalf("promoted by the history: %v, error %v, want %v", promoted, err, versions)
			}
			heads, err := r.Heads(t.Context(), "prod", registrytest.Model)
			if last := events[len(events)-1]; err != nil || len(heads) != 1 || heads[0].Release != last.Release {
				t.Errorf("heads %+v, error %v, want the release of the last promotion, %s", heads, err, last.Version)
			}
		})
	}
}

// A service signs for the bearer of a token, and no longer once the token is revoked. What it signed before
// stays, with the name of the person.
func TestAttestRevokedToken(t *testing.T) {
	t.Parallel()
	s := inMemory(t)
	g, err := authn.New(t.Context(), authn.Config{Tokens: s.names, Secrets: s.names})
	if err != nil {
		t.Fatal(err)
	}
	_, r := network(t, s, g)
	release := r.Build(t, registrytest.Build{})
	req := evidence.AttestRequest{Kind: evidence.AttestWithdrawal, Environment: "prod", Model: release.Model, Release: release.Digest, Comment: "a doubt"}
	if _, err := r.Attest(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	tokens, err := s.names.ListTokens(t.Context())
	if err != nil || len(tokens) != 1 {
		t.Fatalf("tokens %v, error %v, want one", tokens, err)
	}
	count := func(events iter.Seq2[history.Event, error]) (n int) {
		for range events {
			n++
		}
		return n
	}
	had := count(s.names.History(t.Context(), history.HistoryQuery{}))
	if err = s.names.RevokeToken(t.Context(), tokens[0].ID, clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Attest(t.Context(), req); registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("with a revoked token: error %v, want CodeUnauthenticated", err)
	}
	if has := count(s.names.History(t.Context(), history.HistoryQuery{})); has != had {
		t.Errorf("the history has %d events, want %d as before", has, had)
	}
}
