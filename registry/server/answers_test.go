package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/defaults"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/storage"
)

const nodeQuery = "environment=prod&arch=amd64&level=v3&runtime=onnxruntime:1.30.0"

// gated is a registry that refuses to resolve, as one whose configuration is not the agreed one.
type gated struct {
	api.Interface
	closed  atomic.Bool
	asked   atomic.Int64 // about what was not answered before
	catalog atomic.Int64 // state of the tables of names
}

func (g *gated) Resolve(ctx context.Context, q api.ResolveQuery) (api.Resolution, error) {
	if q.Known == nil {
		g.asked.Add(1)
	}
	if g.closed.Load() {
		return api.Resolution{}, registry.Errorf(registry.CodeUnavailable, "the configuration differs")
	}
	return g.Interface.Resolve(ctx, q)
}

// remembering is a world whose service and API remember what they can.
func remembering(t *testing.T, edits ...func(c *server.Config)) (*world, *gated) {
	t.Helper()
	gate := new(gated)
	w := setup(t, append(edits, func(c *server.Config) {
		gate.Interface = c.Registry
		c.Registry = gate
	})...)
	gate.Interface = access.Guard(service.Remember(w.Interface.(*service.Service), w.db, 1<<20))
	inner := w.handler
	w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ctx := storage.AtOneInstant(r.Context())
		if _, ok := storage.PrincipalOf(ctx); !ok {
			ctx = storage.WithPrincipal(ctx, access.Anonymous())
		}
		storage.InstantOf(ctx).Choose(func() (any, bool) { return gate.catalog.Load(), true })
		inner.ServeHTTP(rw, r.WithContext(ctx))
	})
	return w, gate
}

// sameAnswer wants the answer of an API that remembers to be that of one that was just made.
func (w *world) sameAnswer(t *testing.T, after string) *httptest.ResponseRecorder {
	t.Helper()
	c := w.config
	c.Registry = w.Interface
	fresh, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var got *httptest.ResponseRecorder
	for _, coding := range []string{"identity", "gzip", "identity", "gzip"} {
		got = w.do(http.MethodGet, model+"resolve?"+nodeQuery, "", "Accept-Encoding", coding)
		r := httptest.NewRequest(http.MethodGet, model+"resolve?"+nodeQuery, nil)
		r.Header.Set("Accept-Encoding", coding)
		plain := httptest.NewRecorder()
		fresh.ServeHTTP(plain, r)
		a, b := unpacked(t, got), unpacked(t, plain)
		if got.Code != plain.Code || got.Code == http.StatusOK && !bytes.Equal(a, b) || got.Header().Get("ETag") != plain.Header().Get("ETag") {
			t.Fatalf("after %s, %s: got %d %s %s, want %d %s %s", after, coding,
				got.Code, got.Header().Get("ETag"), a, plain.Code, plain.Header().Get("ETag"), b)
		}
	}
	return got
}

func unpacked(t *testing.T, r *httptest.ResponseRecorder) []byte {
	t.Helper()
	if r.Header().Get("Content-Encoding") != "gzip" {
		return r.Body.Bytes()
	}
	unzip, err := gzip.NewReader(bytes.NewReader(r.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The very next resolve shows a promotion, a rollback, evidence, a quarantine, and that the
// registry refuses.
func TestResolveShowsEveryChange(t *testing.T) {
	t.Parallel()
	w, gate := remembering(t)
	tags := make(map[string]string) // by what came before
	see := func(after string) *httptest.ResponseRecorder {
		t.Helper()
		got := w.sameAnswer(t, after)
		tag := got.Header().Get("ETag")
		for earlier, was := range tags {
			if tag == was && tag != "" {
				t.Errorf("after %s: the answer is that after %s", after, earlier)
			}
		}
		tags[after] = tag
		return got
	}
	w.Promoted(t, registrytest.Build{})
	see("a promotion")
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	see("another promotion")
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	delete(tags, "a promotion") // this is its head
	see("a rollback")
	if err := w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	third := w.Promoted(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	see("a promotion after the rollback")
	fail := registrytest.Report(third, third.Engines[0], evidence.VerdictFail)
	fail.FinishedOn = fail.FinishedOn.AddDate(0, 0, 1)
	w.AttachTo(t, "prod", third, third.Engines[0].Digest, evidence.PredicateParity, fail)
	see("a report that failed")

	gate.closed.Store(true)
	if got := w.do(http.MethodGet, model+"resolve?"+nodeQuery, ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("while the registry refuses: status %d, want 503", got.Code)
	}
	gate.closed.Store(false)
	w.AttachTo(t, "prod", third, third.Digest, evidence.PredicateQuarantine, struct{}{})
	if got := see("a quarantine"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "in quarantine") {
		t.Errorf("after a quarantine: %d %s", got.Code, got.Body)
	}
}

// Requests that get the same remembered answer do not write to it.
func TestResolveSharesAnswers(t *testing.T) {
	t.Parallel()
	w, _ := remembering(t)
	w.Promoted(t, registrytest.Build{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			coding := []string{"identity", "gzip"}[i%2]
			for range 20 {
				got := w.do(http.MethodGet, model+"resolve?"+nodeQuery, "", "Accept-Encoding", coding)
				if vary := strings.Join(got.Header().Values("Vary"), ", "); got.Code != http.StatusOK || vary != "Accept, Accept-Encoding" {
					t.Errorf("%s: status %d, Vary %q", coding, got.Code, vary)
				}
			}
		})
	}
	wg.Wait()
}

// resolved wants an engine, or the code of a refusal, and returns the body.
func (w *world) resolved(t *testing.T, what, method, target, body string, status int, header ...string) string {
	t.Helper()
	got := w.do(method, target, body, append(header, "Content-Type", "application/json")...)
	if got.Code != status {
		t.Fatalf("%s: got %d %s, want %d", what, got.Code, got.Body, status)
	}
	return got.Body.String()
}

// The second request of a node is answered from memory, by GET and by POST, and one that differs is not.
func TestResolveRemembersQuestions(t *testing.T) {
	t.Parallel()
	w, gate := remembering(t)
	w.Promoted(t, registrytest.Build{})
	document := `{"environment": "prod", "node": {"v": 1, "os": "linux", "cpu": {"arch": "amd64", "level": "v3"}, "runtimes": {"onnxruntime": "1.30.0"}}}`
	for what, c := range map[string]struct{ method, target, body string }{
		"facts of a node": {http.MethodGet, model + "resolve?" + nodeQuery, ""},
		"node type":       {http.MethodGet, model + "resolve?environment=prod&nodeType=box", ""},
		"node document":   {http.MethodPost, model + "resolve", document},
	} {
		before := gate.asked.Load()
		first := w.resolved(t, what, c.method, c.target, c.body, http.StatusOK)
		if again := w.resolved(t, what+" again", c.method, c.target, c.body, http.StatusOK); again != first {
			t.Errorf("%s: the second answer is %s, want %s", what, again, first)
		}
		if n := gate.asked.Load() - before; n != 1 {
			t.Errorf("%s: %d of 2 requests were answered anew, want 1", what, n)
		}
	}
	const path = model + "resolve?" + nodeQuery
	if got := w.resolved(t, "another host", http.MethodGet, "http://other.example"+path, "", http.StatusOK); !strings.Contains(got, `"ref":"other.example/prod/`) {
		t.Errorf("by another name of the service: got %s, want a ref of it", got)
	}
	if got := w.resolved(t, "text", http.MethodGet, path, "", http.StatusOK, "Accept", "text/plain"); strings.HasPrefix(got, "{") {
		t.Errorf("as text: got %s", got)
	}
	w.resolved(t, "another method", http.MethodPost, path, "", http.StatusBadRequest)
	w.resolved(t, "another operation", http.MethodGet, model+"release?"+nodeQuery, "", http.StatusBadRequest)
	w.resolved(t, "another model", http.MethodGet, strings.Replace(path, "digits", "letters", 1), "", http.StatusNotFound)
}

// The very next resolve shows that a runtime or a node type of the query means something else.
func TestResolveShowsChangedNames(t *testing.T) {
	t.Parallel()
	w, gate := remembering(t)
	w.Promoted(t, registrytest.Build{})
	const query = model + "resolve?environment=prod&nodeType=box&runtime=onnxruntime:1.30.0"
	for range 2 {
		w.resolved(t, "a runtime by its version", http.MethodGet, query, "", http.StatusOK)
	}
	change := func(err error) {
		t.Helper()
		if gate.catalog.Add(1); err != nil {
			t.Fatal(err)
		}
	}
	change(w.config.Runtimes.Put(t.Context(), "onnxruntime:1.30.0",
		artifact.Runtime{V: 1, Name: "x", Runtimes: map[string]string{"onnxruntime": "1.0.0"}}))
	for range 2 {
		w.resolved(t, "the name of another runtime", http.MethodGet, query, "", http.StatusNotFound)
	}
	change(w.config.Runtimes.Delete(t.Context(), "onnxruntime:1.30.0"))
	w.resolved(t, "after it was deleted", http.MethodGet, query, "", http.StatusOK)
	arm := registrytest.Node("v1")
	arm.CPU.Arch, arm.CPU.Level = "arm64", ""
	change(w.config.NodeTypes.Put(t.Context(), "box", arm))
	w.resolved(t, "another node type of that name", http.MethodGet, query, "", http.StatusNotFound)
}

// The very next resolve shows a corrected file of a node type. Names that the catalog has are remembered.
func TestResolveShowsChangedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(n artifact.Node) {
		t.Helper()
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "crate.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(registrytest.Node("v1"))
	w, gate := remembering(t, func(c *server.Config) {
		c.NodeTypes = defaults.Over(c.NodeTypes, defaults.Folder[artifact.Node]{Dir: dir, Read: node.ParseFile})
	})
	w.Promoted(t, registrytest.Build{})
	questions := map[string]struct{ method, target, body string }{
		"GET":  {http.MethodGet, model + "resolve?environment=prod&nodeType=crate", ""},
		"POST": {http.MethodPost, model + "resolve", `{"environment": "prod", "nodeType": "crate"}`},
	}
	for what, c := range questions {
		w.resolved(t, what, c.method, c.target, c.body, http.StatusOK)
	}
	arm := registrytest.Node("v1")
	arm.CPU.Arch, arm.CPU.Level = "arm64", ""
	write(arm)
	for what, c := range questions {
		w.resolved(t, what+" after the file was corrected", c.method, c.target, c.body, http.StatusNotFound)
	}
	before := gate.asked.Load()
	for range 3 {
		w.resolved(t, "a node type of the catalog", http.MethodGet, model+"resolve?environment=prod&nodeType=box", "", http.StatusOK)
	}
	if n := gate.asked.Load() - before; n != 1 {
		t.Errorf("%d of 3 requests for a node type of the catalog were answered anew, want 1", n)
	}
}

// A caller who may not read the model gets no answer that another got.
func TestResolveAsksWhoMay(t *testing.T) {
	t.Parallel()
	w, _ := remembering(t)
	w.Promoted(t, registrytest.Build{})
	ask := func(grants ...storage.Grant) int {
		r := httptest.NewRequest(http.MethodGet, model+"resolve?"+nodeQuery, nil)
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r.WithContext(storage.WithPrincipal(r.Context(), storage.Principal{Name: "node", Grants: grants})))
		return got.Code
	}
	read := func(environment string) storage.Grant {
		return storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: environment, Model: "**"}
	}
	for range 2 {
		if got := ask(read("prod")); got != http.StatusOK {
			t.Fatalf("who may read it: status %d, want 200", got)
		}
	}
	if got := ask(read("staging")); got != http.StatusForbidden {
		t.Errorf("who may not: status %d, want 403", got)
	}
}
