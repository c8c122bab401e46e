package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/webhook"
)

// world is the API over a service in memory.
type world struct {
	registrytest.Registry
	handler http.Handler
	config  server.Config
	log     *bytes.Buffer
	db      *mem.DB
}

func setup(t testing.TB, edits ...func(c *server.Config)) *world {
	t.Helper()
	w := &world{log: new(bytes.Buffer)}
	db, blobs := mem.New(), mem.NewBlobs()
	w.db = db
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	w.Parts, w.Keys = content, registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: w.Keys.Verify, Sign: w.Keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Interface = svc
	w.config = server.Config{
		Registry: svc, Preview: service.Remember(svc, db, 4<<20), URL: "https://models.example",
		Authorize: func(context.Context, storage.Permission, string, string) error { return nil }, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		History: db.History, NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](),
		Nodes:    service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: svc, Clock: db, Life: time.Hour},
		Webhooks: mem.NewTable[storage.Webhook](), Deliveries: mem.NewTable[storage.Delivery](), Idempotency: db, Tokens: db, Clock: db,
		CheckWebhookURL: func(url string) error { return webhook.CheckURL(url, false) },
		Poll:            10 * time.Millisecond,
		ReadNode:        node.Parse, CheckNode: node.Check, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
	}
	if err := w.config.NodeTypes.Put(t.Context(), "box", registrytest.Node("v1")); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(&w.config)
	}
	if w.handler, err = server.New(w.config); err != nil {
		t.Fatal(err)
	}
	return w
}

// broken is a registry of which nothing can be said.
type broken struct{ api.Interface }

func (broken) Models(context.Context, string, string, int) (storage.Page[history.ModelHeads], error) {
	return storage.Page[history.ModelHeads]{}, errors.New("open /srv/secret: permission denied")
}

// do sends a request; header is keys and values.
func (w *world) do(method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder
}

// post sends JSON.
func (w *world) post(target, body string) *httptest.ResponseRecorder {
	return w.do(http.MethodPost, target, body, "Content-Type", "application/json")
}

// problem is what an error looks like from outside.
type problem struct {
	Type, Title, Detail, Code string
	RequestID                 string
	Status                    int
	Promotion                 *api.Promotion
	Resolution                *api.Resolution
}

// wantProblem wants an answer to be a problem as RFC 9457 has it.
func wantProblem(t *testing.T, subject string, got *httptest.ResponseRecorder, status int, code registry.Code) problem {
	t.Helper()
	var p problem
	err := json.Unmarshal(got.Body.Bytes(), &p)
	if err != nil || got.Code != status || p.Status != status || p.Code != string(code) ||
		p.Title == "" || p.Detail == "" || !strings.HasPrefix(p.Type, "https://") ||
		got.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %d %s %s, want %d and the code %s", subject, got.Code, got.Header().Get("Content-Type"), got.Body, status, code)
	}
	return p
}

// cached is how the Cache-Control of an answer begins.
func cached(got *httptest.ResponseRecorder) string {
	if got.Header().Get("ETag") == "" {
		return "no-store"
	}
	return "private, "
}

// want decodes an answer that is none.
func want(t *testing.T, got *httptest.ResponseRecorder, status int, into any) {
	t.Helper()
	if got.Code != status || got.Header().Get("Content-Type") != "application/json" ||
		!strings.HasPrefix(got.Header().Get("Cache-Control"), cached(got)) {
		t.Fatalf("%d %v %s, want %d and JSON", got.Code, got.Header(), got.Body, status)
	}
	if err := json.Unmarshal(got.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}
