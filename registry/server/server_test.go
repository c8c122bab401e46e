package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
)

const model = "/api/v1/models/vision/digits/"

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(c *server.Config){
		"no registry":  func(c *server.Config) { c.Registry = nil },
		"no authorize": func(c *server.Config) { c.Authorize = nil },
		"no history":   func(c *server.Config) { c.History = nil },
		"no types":     func(c *server.Config) { c.NodeTypes = nil },
		"no runtimes":  func(c *server.Config) { c.Runtimes = nil },
		"no webhooks":  func(c *server.Config) { c.Webhooks = nil },
		"no check":     func(c *server.Config) { c.CheckWebhookURL = nil },
		"no keys":      func(c *server.Config) { c.Idempotency = nil },
		"no reader":    func(c *server.Config) { c.ReadLabels = nil },
	} {
		c := setup(t).config
		edit(&c)
		if h, err := server.New(c); h != nil || registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %v, error %v, want CodeInvalid", name, h, err)
		}
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, c := range []struct {
		method, path string
		status       int
		code         registry.Code
		allow        string
	}{
		{"GET", "/", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1/heads/x", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1/models/", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1/models/resolve", 404, registry.CodeNotFound, ""},
		{"GET", model, 404, registry.CodeNotFound, ""},
		{"GET", model + "frobnicate", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1/models/Vision/resolve", 404, registry.CodeNotFound, ""},
		{"GET", "/api/v1/models/a/../b/resolve", 404, registry.CodeNotFound, ""},
		{"POST", "/api/v1/environments", 405, registry.CodeInvalid, "GET, HEAD"},
		{"DELETE", "/api/v1/heads", 405, registry.CodeInvalid, "GET, HEAD"},
		{"PUT", "/api/v1/history", 405, registry.CodeInvalid, "GET, HEAD"},
		{"GET", model + "rollbacks", 405, registry.CodeInvalid, "POST"},
		{"DELETE", model + "releases", 405, registry.CodeInvalid, "GET, HEAD"},
		{"PATCH", model + "resolve", 405, registry.CodeInvalid, "GET, HEAD, POST"},
	} {
		got := w.do(c.method, c.path, "")
		wantProblem(t, c.method+" "+c.path, got, c.status, c.code)
		if allow := got.Header().Get("Allow"); allow != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, allow, c.allow)
		}
	}
}

func TestBodiesAreStrict(t *testing.T) {
	t.Parallel()
	w := setup(t)
	operations := []string{"resolve", "publications", "evidence", "promotions", "rollbacks", "hold-releases"}
	for _, operation := range operations {
		for name, body := range map[string]string{
			"empty": "", "no JSON": "from=staging", "half": `{"reason":"`, "list": "[]", "text": `"x"`,
			"unknown field": `{"surprise":"prod"}`, "two documents": `{}{}`, "more behind": `{}}`, "junk behind": "{} x",
			"deep": strings.Repeat(`{"node":`, 8_000), "wrong type": `{"environment":1,"release":1,"ref":1}`,
		} {
			wantProblem(t, operation+" with "+name, w.post(model+operation, body), http.StatusBadRequest, registry.CodeInvalid)
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json-seq", "application/"} {
			wantProblem(t, operation+" of type "+kind, w.do("POST", model+operation, "{}", "Content-Type", kind),
				http.StatusUnsupportedMediaType, registry.CodeInvalid)
		}
		large := `{"environment":"` + strings.Repeat("x", 13<<20) + `"}`
		if operation == "publications" || operation == "promotions" {
			large = strings.Replace(large, "environment", map[string]string{"publications": "release", "promotions": "from"}[operation], 1)
		}
		wantProblem(t, operation+" that is too large", w.post(model+operation, large), http.StatusRequestEntityTooLarge, registry.CodeInvalid)
	}
	got := w.do("POST", model+"rollbacks", `{"environment":"prod","reason":"x"}`+"\n", "Content-Type", "application/json; charset=utf-8")
	if p := wantProblem(t, "no body", w.post(model+"promotions", " "), http.StatusBadRequest,
		registry.CodeInvalid); !strings.Contains(p.Detail, "request body: empty") {
		t.Errorf("an empty body is %q", p.Detail)
	}
	wantProblem(t, "a release that is not named", w.post(model+"publications", `{"release":""}`), http.StatusBadRequest, registry.CodeInvalid)
	wantProblem(t, "a good body", got, http.StatusNotFound, registry.CodeNotFound)
}

func TestQueriesAreStrict(t *testing.T) {
	t.Parallel()
	w := setup(t, stopped)
	for _, path := range []string{
		"/api/v1/environments?x=y", "/api/v1/heads?env=prod", "/api/v1/heads?environment=%zz", "/api/v1/heads?a;b",
		"/api/v1/history?after=x", "/api/v1/history?order=up", "/api/v1/history?limit=0", "/api/v1/history?limit=1001",
		"/api/v1/history?cursor=x", "/api/v1/models?cursor=MTpq_", "/api/v1/history?before=-1",
		"/api/v1/history?kind=promoted", "/api/v1/history?subject=1.0.0", "/api/v1/events?kind=promoted", "/api/v1/events?after=1",
		model + "releases", model + "release?ref=1.0.0", model + "engines", model + "evidence",
		model + "engine?digest=x", model + "bundle?digest=x", model + "resolve?nodeType=box",
		model + "releases?env=prod", model + "evidence?release=x",
		model + "resolve?environment=prod", model + "resolve?environment=prod&arch=no+word", model + "resolve?env=prod&arch=amd64&level=v3",
		model + "resolve?environment=prod&arch=amd64&feature=avx2", model + "resolve?environment=prod&arch=amd64&memoryMiB=-1",
		model + "resolve?environment=prod&arch=amd64&gpuProduct=NVIDIA-L4&gpuCount=0",
		model + "resolve?environment=prod&arch=amd64&gpuProduct=NVIDIA-L4&gpuCount=65",
		model + "resolve?environment=prod&arch=amd64&gpuProduct=NVIDIA-L4&gpuMemoryMiB=much",
		model + "resolve?environment=prod&arch=amd64&runtime=onnxruntime",
		model + "resolve?environment=prod&arch=amd64&runtime=:1",
		model + "resolve?environment=prod&nodeType=box&arch=amd64", model + "resolve?environment=prod&nodeType=box&level=v3",
	} {
		wantProblem(t, path, w.do("GET", path, ""), http.StatusBadRequest, registry.CodeInvalid)
	}
	for _, body := range []string{`{"environment":"prod"}`, `{"environment":"prod","nodeType":"box","node":{}}`, `{"environment":"prod","node":{"v":2}}`,
		`{"environment":"prod","node":{"os":"linux","cpu":{"arch":"amd64"}}}`, `{"environment":"prod","node":{"v":1,"os":"linux","cpu":{"arch":"no word"}}}`} {
		wantProblem(t, body, w.post(model+"resolve", body), http.StatusBadRequest, registry.CodeInvalid)
	}
}

func TestInternalErrorsAreLoggedNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *server.Config) { c.Registry = broken{c.Registry} })
	got := w.do("GET", "/api/v1/heads", "")
	wantProblem(t, "heads", got, http.StatusInternalServerError, registry.CodeInternal)
	if strings.Contains(got.Body.String(), "secret") || !strings.Contains(w.log.String(), "/srv/secret") ||
		!strings.Contains(w.log.String(), "path=/api/v1/heads") {
		t.Errorf("the client is told %s, the log %s", got.Body, w.log)
	}
	wantProblem(t, "environments", w.do("GET", "/api/v1/environments?x=y", ""), http.StatusBadRequest, registry.CodeInvalid)
	if n := strings.Count(w.log.String(), "\n"); n != 1 {
		t.Errorf("the log has %d lines, want 1: %s", n, w.log)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, path := range []string{"/api/v1/heads", "/api/v1/history", "/api/v1/heads?environment=prod&model=vision/digits"} {
		got := w.do("GET", path, "")
		var list []any
		if want(t, got, http.StatusOK, &list); strings.TrimSpace(got.Body.String()) != "[]" {
			t.Errorf("%s is %s", path, got.Body)
		}
	}
	release := w.Build(t, registrytest.Build{})
	if body := w.do("GET", model+"evidence?environment=staging&ref="+string(release.Digest),
		"").Body.String(); body != `{"claims":[],"ignored":[],"ignoredCount":0}`+"\n" {
		t.Errorf("claims are %s", body)
	}
}

func TestHistoryIsSelected(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	var all, some []history.Event
	want(t, w.do("GET", "/api/v1/history", ""), http.StatusOK, &all)
	for query, keep := range map[string]func(e history.Event) bool{
		"kind=promote":                                func(e history.Event) bool { return e.Kind == history.EventPromote },
		"environment=staging&after=2":                 func(e history.Event) bool { return e.Environment == "staging" && e.Seq > 2 },
		"order=desc&model=vision/digits":              func(history.Event) bool { return true },
		"order=asc&subject=" + string(all[1].Subject): func(e history.Event) bool { return e.Subject == all[1].Subject },
		"model=vision/letters":                        func(history.Event) bool { return false },
	} {
		want(t, w.do("GET", "/api/v1/history?"+query, ""), http.StatusOK, &some)
		n := 0
		for _, e := range all {
			if keep(e) {
				n++
			}
		}
		if len(some) != n || strings.HasPrefix(query, "order=desc") && some[0].Seq != int64(len(all)) {
			t.Errorf("%s gives %d events, want %d", query, len(some), n)
		}
	}
}

func TestRefusedPromotionHasItsDecision(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if p := wantProblem(t, "nothing to promote", w.post(model+"promotions", `{}`), http.StatusNotFound, registry.CodeNotFound); p.Promotion != nil {
		t.Errorf("it has the promotion %+v, which nobody came to", p.Promotion)
	}
	release := w.Build(t, registrytest.Build{})
	p := wantProblem(t, "promote", w.post(model+"promotions", `{}`), http.StatusConflict, registry.CodePolicy)
	if p.Promotion == nil || p.Promotion.Release != release.Digest || len(p.Promotion.Decision.Requirements) == 0 || p.Promotion.Decision.Allowed() {
		encoded, _ := json.Marshal(p)
		t.Errorf("the problem is %s", encoded)
	}
}
