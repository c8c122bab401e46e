package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web"
	"mlpromote.dev/mlpromote/web/page"
)

// world is the pages over a service in memory, with the permissions that a real service checks.
type world struct {
	registrytest.Registry
	pages http.Handler
	log   *bytes.Buffer
}

// database is what the service of a world needs of a catalog.
type database interface {
	storage.Catalog
	storage.RepositoryRecords
	storage.Listing
	storage.Intents
	history.HistoryIndex
}

func setup(t testing.TB, edits ...func(*page.Config)) *world {
	t.Helper()
	return setupOn(t, mem.New(), edits...)
}

// setupOn is setup with another catalog.
func setupOn(t testing.TB, db database, edits ...func(*page.Config)) *world {
	t.Helper()
	w := &world{log: new(bytes.Buffer)}
	blobs := mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	w.Parts, w.Keys = content, registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](),
		Environments:       registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: w.Keys.Verify, Sign: w.Keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	remembering := service.Remember(svc, db, 16<<20)
	w.Interface = remembering
	config := page.Config{
		Registry: access.Guard(remembering), Preview: access.Preview(remembering, remembering.Environments), Refused: access.RefusalOf,
		Authorize: access.AllowRoute, NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](), ReadNode: node.Parse,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if err := config.NodeTypes.Put(t.Context(), "box", registrytest.Node("v3")); err != nil {
		t.Fatal(err)
	}
	if err := config.Runtimes.Put(t.Context(), "old", artifact.Runtime{V: 1, Name: "old", Runtimes: map[string]string{"onnxruntime": "1.0.0"}}); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(&config)
	}
	w.pages, err = web.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// may is a caller with permissions for models in environments.
func may(environment, model string, permissions ...storage.Permission) *storage.Principal {
	return &storage.Principal{Name: "token:jane", Grants: []storage.Grant{{Permissions: permissions, Environment: environment, Model: model}}}
}

// everything is an administrator.
func everything() *storage.Principal { return may("**", "**", storage.PermissionAdminister) }

// get requests a page; nil is a caller who is not known.
func (w *world) get(as *storage.Principal, target string) *httptest.ResponseRecorder {
	return w.do(as, httptest.NewRequest(http.MethodGet, target, nil))
}

func (w *world) do(as *storage.Principal, r *http.Request) *httptest.ResponseRecorder {
	if as != nil {
		r = r.WithContext(storage.WithPrincipal(r.Context(), *as))
	}
	recorder := httptest.NewRecorder()
	w.pages.ServeHTTP(recorder, r)
	return recorder
}

// wantPage wants a page with texts in it.
func wantPage(t *testing.T, what string, got *httptest.ResponseRecorder, status int, texts ...string) {
	t.Helper()
	if got.Code != status || got.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%s: got %d %s, want the page with status %d", what, got.Code, got.Header().Get("Content-Type"), status)
	}
	for _, text := range texts {
		if !strings.Contains(got.Body.String(), text) {
			t.Errorf("%s: the page lacks %q:\n%s", what, text, got.Body)
		}
	}
}

// wantWithout wants a page that does not tell of something.
func wantWithout(t *testing.T, what string, got *httptest.ResponseRecorder, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(got.Body.String(), text) {
			t.Errorf("%s: the page tells of %q:\n%s", what, text, got.Body)
		}
	}
}
