package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

const (
	modelPage   = "/models/vision/digits"
	promotePage = "/environments/prod/promote/vision/digits"
)

// form posts fields to the page of nodes; they are keys and values.
func (w *world) form(as *storage.Principal, fields ...string) *httptest.ResponseRecorder {
	values := make(url.Values)
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "/nodes", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.do(as, r)
}

// The page of a promotion has every requirement, what would change for node types, and whether the reader may
// promote.
func TestPromotionPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	next := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: registrytest.Engines()[:1]})
	wantPage(t, "unproven", w.get(everything(), promotePage), http.StatusOK, "provenance", "unmet", "run mlpromote build", `href="/api/v1/models/vision/digits/promotion-check?`, "engine linux-amd64-v3/int8 is gone",
		"box", "differs", "mlpromote promote staging/vision/digits@"+string(next.Digest)+" --to prod")
	releasePage := modelPage + "/-/releases/" + string(next.Digest)
	for page, get := range map[string]string{promotePage: `<td data-label="Of staging"><a href="`, releasePage: `<td data-label="Engine"><a href="`} {
		wantPage(t, "what nodes get", w.get(everything(), page), http.StatusOK, "Nodes get", ">box<", get, ">linux-amd64-v1/fp32</a>")
	}
	w.Prove(t, next)
	wantPage(t, "proven", w.get(everything(), promotePage), http.StatusOK, "may be promoted", "signed by a builder")
	got := w.get(may("**", "**", storage.PermissionRead), promotePage)
	wantPage(t, "reader", got, http.StatusOK, "You do not have the permission &#34;promote&#34; for vision/digits in prod")
	for environment, status := range map[string]int{"staging": http.StatusBadRequest, "qa": http.StatusNotFound} {
		wantPage(t, environment, w.get(everything(), "/environments/"+environment+"/promote/vision/digits"), status)
	}
	wantPage(t, "no such model", w.get(everything(), "/environments/prod/promote/vision/other"), http.StatusNotFound)
}

// A caller that asks too often gets a page that says when to come back, and its own limit alone.
func TestTooManyPages(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	w := setup(t, func(c *page.Config) {
		c.Wait = func(r *http.Request) time.Duration {
			p, _ := storage.PrincipalOf(r.Context())
			if asked[p.Name]++; asked[p.Name] > 2 {
				return 1500 * time.Millisecond
			}
			return 0
		}
	})
	reader := may("**", "**", storage.PermissionRead)
	for range 2 {
		wantPage(t, "within the limit", w.get(reader, "/nodes"), http.StatusOK)
	}
	got := w.get(reader, modelPage)
	wantPage(t, "over the limit", got, http.StatusTooManyRequests, "Too many requests", "Wait 2 seconds")
	if after := got.Header().Get("Retry-After"); after != "2" {
		t.Errorf("got Retry-After %q, want 2", after)
	}
	other := *reader
	other.Name = "another"
	wantPage(t, "another caller", w.get(&other, "/nodes"), http.StatusOK)
}

// A pasted node gets its engine and the reasons against all others, or a sentence about what is wrong with it.
func TestNodesPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	wantPage(t, "nodes", w.get(everything(), "/nodes"), http.StatusOK, "box", "linux amd64 level v3", "onnxruntime 1.30.0", "old")
	wantPage(t, "covered", w.get(everything(), "/nodes?model=vision/digits"), http.StatusOK, "linux-amd64-v3/", "Why not the others")
	pasted, err := json.Marshal(registrytest.Node("v1"))
	if err != nil {
		t.Fatal(err)
	}
	const model, environment = "vision/digits", "prod"
	wantPage(t, "resolve", w.form(everything(), "model", model, "environment", environment, "node", string(pasted)), http.StatusOK, "found", "linux-amd64-v1/fp32", "level v1")
	wantPage(t, "old software", w.form(everything(), "model", model, "environment", environment, "runtime", "old", "node", string(pasted)), http.StatusOK, "no engine fits", "onnxruntime")
	wantPage(t, "no node", w.form(everything(), "model", model, "environment", environment, "node", "{<i>"), http.StatusOK, `role="alert"`, "{&lt;i&gt;")
	wantPage(t, "other environment", w.form(everything(), "model", model, "environment", "qa", "node", string(pasted)), http.StatusNotFound)
	wantPage(t, "too large", w.form(everything(), "node", strings.Repeat("x", 300<<10)), http.StatusBadRequest)
	wantPage(t, "unknown caller", w.form(nil, "model", model, "node", string(pasted)), http.StatusUnauthorized)
	got := w.form(may("**", "text/*", storage.PermissionRead), "model", model, "environment", environment, "node", string(pasted))
	wantPage(t, "reader of other models", got, http.StatusOK, "none", "may not read")
	wantWithout(t, "reader of other models", got, "linux-amd64-v1")
}

// The history can be filtered and paged, and its page checks the chain of what it shows.
func TestHistoryPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Model: "secret/plans", Salt: "s"})
	wantPage(t, "history", w.get(everything(), "/history"), http.StatusOK, "intact", "1.0.0 was promoted to prod", "secret/plans", "/api/v1/history/verification")
	got := w.get(everything(), "/history?kind=promote&model=vision/digits&environment=prod")
	wantPage(t, "promotions", got, http.StatusOK, "1.0.0 was promoted to prod", "not checked")
	wantWithout(t, "promotions", got, "was published", "secret/plans")
	got = w.get(may("**", "vision/*", storage.PermissionRead), "/history")
	wantPage(t, "reader", got, http.StatusOK, "vision/digits")
	wantWithout(t, "reader", got, "secret")
	wantWithout(t, "older", w.get(everything(), "/history?before=2"), "was promoted")
	for target, status := range map[string]int{"kind=x": http.StatusBadRequest, "before=x": http.StatusBadRequest, "before=-1": http.StatusBadRequest, "environment=qa": http.StatusNotFound} {
		wantPage(t, target, w.get(everything(), "/history?"+target), status)
	}
	w.pages = rewritten(t)
	wantPage(t, "rewritten", w.get(everything(), "/history"), http.StatusOK, "broken", "was changed")
}

// rewritten are pages over a registry whose history was changed.
func rewritten(t *testing.T) http.Handler {
	t.Helper()
	w := setup(t, func(c *page.Config) { c.Registry = forged{c.Registry} })
	w.Promoted(t, registrytest.Build{})
	return w.pages
}

// forged says that somebody else did everything.
type forged struct{ api.Interface }

func (f forged) History(ctx context.Context, q history.HistoryQuery) ([]history.Event, error) {
	events, err := f.Interface.History(ctx, q)
	for i := range events {
		events[i].Principal = "token:somebody"
	}
	return events, err
}

// A search finds models, versions and digests that the reader may see.
func TestSearchPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Model: "secret/plans", Salt: "s"})
	for query, want := range map[string]string{
		"digi": modelPage, "VISION": modelPage, "1.0.0": "/-/releases/" + string(release.Digest), string(release.Digest)[7:15]: "/-/releases/" + string(release.Digest),
		string(release.Engines[0].Digest): "/-/engines/" + string(release.Engines[0].Digest),
	} {
		wantPage(t, "search for "+query, w.get(everything(), "/search?q="+url.QueryEscape(query)), http.StatusOK, want)
	}
	wantPage(t, "nothing", w.get(everything(), "/search?q=zzz"), http.StatusOK, "Nothing that you may see fits")
	wantWithout(t, "a hostile text", w.get(everything(), "/search?q="+url.QueryEscape(`"><script>`)), "<script>")
	wantWithout(t, "reader", w.get(may("**", "vision/*", storage.PermissionRead), "/search?q=s"), "secret")
}

// The board says why a release cannot go on, without a click.
func TestBoardSaysWhatWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	wantPage(t, "no model", w.get(everything(), "/"), http.StatusOK, "No model has been published yet.", "mlpromote build")

	first := w.Promoted(t, registrytest.Build{})
	wantPage(t, "everywhere the same", w.get(everything(), "/"), http.StatusOK, ">1.0.0</a>", "nothing</span>", "by local user")

	second := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	wantPage(t, "nothing proven", w.get(everything(), "/"), http.StatusOK, "<b>2.0.0</b>", "no signature of a trusted builder: run mlpromote build", "reasons to wait")

	w.Prove(t, second)
	wantPage(t, "proven", w.get(everything(), "/"), http.StatusOK, "may be promoted")

	w.AttachTo(t, "staging", second, second.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong <labels>"})
	wantPage(t, "in quarantine", w.get(everything(), "/"), http.StatusOK, "refused", "wrong &lt;labels&gt;")

	if err := w.SetHold(t.Context(), "prod", first.Model, "until the audit"); err != nil {
		t.Fatal(err)
	}
	wantPage(t, "held", w.get(everything(), "/"), http.StatusOK, "held", "until the audit")
}

// The board says that nodes are not given what an environment has, and why; in the first environment nothing is promised.
func TestBoardSaysWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	wantWithout(t, "before", w.get(everything(), "/"), "not given to nodes")

	w.AttachTo(t, "prod", first, first.Engines[0].Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "crashes <often>"})
	wantPage(t, "an engine in quarantine", w.get(everything(), "/"), http.StatusOK, "not given to nodes", "1 of 3 engines", "crashes &lt;often&gt;")
	wantWithout(t, "reader of staging alone", w.get(may("staging", "**", storage.PermissionRead), "/"), "not given to nodes", "crashes")

	w.AttachTo(t, "prod", first, first.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	wantPage(t, "the release in quarantine", w.get(everything(), "/"), http.StatusOK, "3 of 3 engines")
}

// What an environment had on a day is in the timeline of the model, for readers of that environment.
func TestTimeline(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: first.Model, Reason: "p99 <doubled>"}); err != nil {
		t.Fatal(err)
	}
	got := w.get(everything(), modelPage)
	body := got.Body.String()
	rows := regexp.MustCompile(`data-label="Version"><a [^>]*>([^<]*)</a></td><td data-label="From">([^<]*)</td><td data-label="Until">([^<]*)</td>`).FindAllStringSubmatch(body, -1)
	if len(rows) != 3 {
		t.Fatalf("got %d rows, want 3 of the timeline:\n%s", len(rows), body)
	}
	for i, version := range []string{"1.0.0", "2.0.0", "1.0.0"} {
		until := "now"
		if i > 0 {
			until = rows[i-1][2]
		}
		if rows[i][1] != version || rows[i][3] != until {
			t.Errorf("row %d: got %s until %s, want %s until %s", i, rows[i][1], rows[i][3], version, until)
		}
	}
	wantPage(t, "rolled back", w.get(everything(), modelPage), http.StatusOK, "rolled back", "p99 &lt;doubled&gt;")
	wantWithout(t, "reader of staging alone", w.get(may("staging", "**", storage.PermissionRead), modelPage), "Timeline", "doubled")
}

// Two releases are compared for readers who may see both, with the rules that the policy has.
func TestCompare(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *page.Config) {
		c.Compare = func(_ context.Context, now, was policy.Located) (policy.Comparison, error) {
			if now.Release.Tag() == "2.0.0" && was.Release.Tag() == "1.0.0" {
				return policy.Comparison{Looser: []string{"int8: top1 of <logits>: 0.9, was 0.99"}, Interface: []string{"output logits is gone"}}, nil
			}
			return policy.Comparison{Looser: []string{"fp32: atol of x: 1, was 2"}}, nil
		}
	})
	first := w.Promoted(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: registrytest.Engines()[1:]})
	link := regexp.MustCompile(`href="(/models/vision/digits/-/compare[^"]*)"`)
	found := link.FindStringSubmatch(w.get(everything(), promotePage).Body.String())
	if found == nil {
		t.Fatal("the page of the promotion has no link that compares")
	}
	address := html.UnescapeString(found[1])
	wantPage(t, "comparison", w.get(everything(), address), http.StatusOK, "1.0.0 and 2.0.0", "engine linux-amd64-v1/fp32 is gone", "looser",
		"int8: top1 of &lt;logits&gt;: 0.9, was 0.99", "tighter", "fp32: atol of x: 1, was 2", "output logits is gone", "it has no such engine", "not verified", "pass</span>")
	if link.FindString(w.get(everything(), modelPage+"?environment=staging").Body.String()) == "" {
		t.Error("the list of releases has no link that compares")
	}
	if got := w.get(may("prod", "**", storage.PermissionRead), address); got.Code != http.StatusForbidden && got.Code != http.StatusNotFound {
		t.Errorf("a reader of prod alone: got %d, want it refused", got.Code)
	}
	for what, query := range map[string]string{"no releases": "", "a tag": "?a=1.0.0&b=2.0.0", "one": "?a=" + string(first.Digest), "a script": "?a=<script>&b=" + string(second.Digest)} {
		if got := w.get(everything(), modelPage+"/-/compare"+query); got.Code != http.StatusBadRequest || strings.Contains(got.Body.String(), "<script>") {
			t.Errorf("%s: got %d, want 400", what, got.Code)
		}
	}
	census := func(environment string, r artifact.Release, e artifact.Engine, counts map[string]int) {
		w.AttachTo(t, environment, r, e.Digest, evidence.PredicateProvenance, map[string]any{"buildDefinition": map[string]any{
			"internalParameters": map[string]any{"operators": evidence.Census{Of: evidence.CensusOfGraph, Counts: counts}}}})
	}
	beside := func() *httptest.ResponseRecorder {
		return w.get(everything(), modelPage+"/-/compare?a="+string(first.Digest)+"&b="+string(second.Digest))
	}
	wantPage(t, "before operators were counted", beside(), http.StatusOK, "not counted")
	census("prod", first, first.Engines[1], map[string]int{"ai.onnx.Conv": 3, "ai.onnx.Gemm": 2})
	census("staging", second, second.Engines[0], map[string]int{"ai.onnx.Conv": 4, "com.microsoft.QGemm": 2})
	wantPage(t, "with operators", beside(), http.StatusOK, "3 operators differ, counted in the graph that its compiler took",
		"<b>Conv</b> <span class=\"num\">3 → 4</span>", "vanished</span> <b>Gemm</b>", "appeared</span> <b>com.microsoft.QGemm</b>", "/comparison?from=sha256")
	wantPage(t, "the same twice", w.get(everything(), modelPage+"/-/compare?a="+string(first.Digest)+"&b="+string(first.Digest)), http.StatusOK, "nothing but its version")
}

// What a promotion would change, the engines with their verdicts and the events are on the page of the model; the
// evidence with its signers is on that of the release.
func TestModelReleaseEngine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: registrytest.Engines()[1:]})
	wantPage(t, "model", w.get(everything(), modelPage), http.StatusOK,
		"engine linux-amd64-v1/fp32 is gone", "linux-amd64-v3/int8", "pass</span>", "1.0.0 was promoted to prod", `href="/api/v1/models/vision/digits/release?environment=prod"`)
	wantPage(t, "model in staging", w.get(everything(), modelPage+"?environment=staging"), http.StatusOK, "not verified")

	release := modelPage + "/-/releases/" + string(first.Digest)
	wantPage(t, "release", w.get(everything(), release), http.StatusOK, "in prod", "provenance", "parity report", "verification summary", "builder", "trusted")
	engine := modelPage + "/-/engines/" + string(first.Engines[2].Digest)
	wantPage(t, "engine", w.get(everything(), engine), http.StatusOK, "linux-amd64-v3/int8", "amd64 from level v3", "mlpromote pull vision/digits --env prod", "parity report")
	wantPage(t, "engine of an older release", w.get(everything(), engine+"?environment=staging"), http.StatusOK, "1.0.0")

	w.AttachTo(t, "prod", first, first.Engines[0].Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "crashes"})
	for what, page := range map[string]string{"model": modelPage, "release": release, "engine": modelPage + "/-/engines/" + string(first.Engines[0].Digest)} {
		wantPage(t, what+" in quarantine", w.get(everything(), page), http.StatusOK, "in quarantine", "crashes")
	}
}

// Nothing is shown to callers that are not known, and to others only what they may read.
func TestPagesByRole(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Model: "secret/plans", Salt: "s"})
	w.Build(t, registrytest.Build{Version: "7.7.7", Salt: "7"})
	pages := []string{
		"/", modelPage, modelPage + "/-/releases/" + string(release.Digest), modelPage + "/-/engines/" + string(release.Engines[0].Digest),
	}
	lists := []string{promotePage, "/nodes", "/history", "/search?q=plans"}
	nothing := &storage.Principal{Name: "token:none"}
	ofProd, ofOther := may("prod", "vision/*", storage.PermissionRead), may("**", "text/*", storage.PermissionRead)
	approver := may("**", "**", storage.PermissionApprove)
	for _, page := range slices.Concat(pages, lists) {
		got := w.get(nil, page)
		wantPage(t, "unknown caller at "+page, got, http.StatusUnauthorized, "Sign in to see this page")
		wantWithout(t, "unknown caller at "+page, got, "1.0.0", string(release.Digest[7:19]))
		got = w.get(nothing, page)
		wantPage(t, "caller without grants at "+page, got, http.StatusForbidden, "You may not see this", "no grant")
		wantPage(t, "caller who may approve but not read at "+page, w.get(approver, page), http.StatusForbidden, "You may not see this")
		wantWithout(t, "reader of prod at "+page, w.get(ofProd, page), "7.7.7", "secret/plans")
		wantWithout(t, "reader of other models at "+page, w.get(ofOther, page), "1.0.0</a>", "secret/plans")
	}
	for _, page := range pages {
		got := w.get(ofProd, page)
		wantPage(t, "reader of prod at "+page, got, http.StatusOK, "1.0.0")
		if page != "/" {
			got = w.get(ofOther, page)
			if got.Code != http.StatusForbidden && got.Code != http.StatusNotFound {
				t.Errorf("reader of other models at %s: got %d, want a refusal", page, got.Code)
			}
			wantWithout(t, "reader of other models at "+page, got, "1.0.0")
		}
	}
	got := w.get(ofOther, "/")
	wantPage(t, "reader of other models", got, http.StatusOK, "No model")
	wantWithout(t, "reader of other models", got, "vision", "secret")
	wantPage(t, "reader of prod at the page of a promotion", w.get(ofProd, promotePage), http.StatusForbidden, "You may not see this")
	wantPage(t, "reader of prod in staging", w.get(ofProd, modelPage+"?environment=staging"), http.StatusOK, "None that you may see.")
}

// Texts of others are shown as text, with what is invisible in them written out.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	const script = `"><script>alert(1)</script>`
	w.AttachTo(t, "prod", release, release.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: script})
	for _, page := range []string{
		modelPage, modelPage + "/-/releases/" + string(release.Digest), "/",
		"/models/%3Cscript%3Ealert(1)%3C/script%3E", "/models/a%0Ab%E2%80%AEc", "/%3Cscript%3E", "/models/vision/digits?environment=" + "%3Cscript%3E",
		"/models/vision/digits/-/releases/%3Cscript%3E", "/?after=%22%3E%3Cscript%3E", "/?%3Cscript%3E=1",
	} {
		got := w.get(everything(), page)
		if strings.Contains(got.Body.String(), "<script>") || strings.ContainsAny(got.Body.String(), "\u202e") {
			t.Errorf("%s: a text of others is not escaped:\n%s", page, got.Body)
		}
	}
	wantPage(t, "a person with a strange name", w.get(&storage.Principal{Name: "token:a\u202eb<i>", Grants: everything().Grants}, "/"), http.StatusOK, `a\u202eb&lt;i&gt;`)
}

// Addresses that no link has are refused.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	for target, status := range map[string]int{
		"/?x=1": http.StatusBadRequest, "/?after=a&after=b": http.StatusBadRequest, "/?after=" + strings.Repeat("a", 600): http.StatusBadRequest,
		"/?" + strings.Repeat("after=&", 1000): http.StatusBadRequest, "/?after=%zz": http.StatusBadRequest,
		"/nothing": http.StatusNotFound, "/models/vision/other": http.StatusNotFound, "/models/": http.StatusNotFound,
		modelPage + "/-/": http.StatusNotFound, modelPage + "/-/releases/1.0.0": http.StatusNotFound,
		modelPage + "/-/releases/sha256:" + strings.Repeat("0", 64): http.StatusNotFound, modelPage + "/-/engines/sha256:" + strings.Repeat("0", 64): http.StatusNotFound,
		modelPage + "?environment=qa": http.StatusNotFound, modelPage: http.StatusOK,
	} {
		wantPage(t, target[:min(len(target), 80)], w.get(everything(), target), status)
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
		if got := w.do(everything(), httptest.NewRequest(method, "/", nil)); got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s /: got %d, want a refusal", method, got.Code)
		}
	}
}

// Every answer keeps browsers from running and embedding anything else, and pages have nothing inline.
func TestHeadersAndAssets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	inline := regexp.MustCompile(`<style|\sstyle=|<script>|\son[a-z]+=|https?://`)
	page := w.get(everything(), modelPage)
	if found := inline.FindString(page.Body.String()); found != "" {
		t.Errorf("the page has %q, want nothing inline and nothing of other hosts", found)
	}
	for _, target := range []string{"/", "/nothing", modelPage, "/assets/nothing"} {
		h := w.get(everything(), target).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"Referrer-Policy":         "same-origin", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", target, name, got, want)
			}
		}
	}
	assets := regexp.MustCompile(`/assets/[a-z]+\.[0-9a-f]{16}\.(css|js|svg)`).FindAllString(page.Body.String(), -1)
	if len(assets) != 3 {
		t.Fatalf("the page names the assets %q, want a style sheet, a script and an icon", assets)
	}
	for _, name := range assets {
		got := w.get(nil, name)
		if got.Code != http.StatusOK || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d and Cache-Control %q, want it kept for good", name, got.Code, got.Header().Get("Cache-Control"))
		}
		if size := got.Body.Len(); strings.HasSuffix(name, ".js") && size > 3<<10 {
			t.Errorf("%s has %d bytes, want at most 3 KiB", name, size)
		}
	}
	if got := page.Header().Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("a page has Cache-Control %q, want it kept by no shared cache", got)
	}
}

// What only the operator may know is logged and not shown.
func TestFaultsAreNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *page.Config) { c.Registry = broken{c.Registry} })
	got := w.get(everything(), "/")
	wantPage(t, "a fault", got, http.StatusInternalServerError, "This page cannot be shown now")
	wantWithout(t, "a fault", got, "/srv/secret")
	if !strings.Contains(w.log.String(), "/srv/secret") {
		t.Errorf("the log lacks the fault: %s", w.log)
	}
}

// broken is a registry of which nothing can be said.
type broken struct{ api.Interface }

func (broken) Models(context.Context, string, string, int) (storage.Page[history.ModelHeads], error) {
	return storage.Page[history.ModelHeads]{}, errors.New("open /srv/secret: permission denied")
}

// Commands name the service as it is configured, since a proxy in front of it need not say how it is reached.
func TestCommandsNameTheService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ url, proto, want, host string }{
		"as configured":           {"https://registry.example.com", "", "--registry https://registry.example.com -o", "oras pull registry.example.com/prod/"},
		"as it was reached":       {"", "", "--registry http://example.com -o", "oras pull --plain-http example.com/prod/"},
		"behind a proxy with TLS": {"", "https", "--registry https://example.com -o", "oras pull example.com/prod/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, func(config *page.Config) { config.URL = c.url })
			released := w.Promoted(t, registrytest.Build{})
			r := httptest.NewRequest(http.MethodGet, modelPage+"/-/engines/"+string(released.Engines[2].Digest), nil)
			r.Header.Set("X-Forwarded-Proto", c.proto)
			wantPage(t, "engine", w.do(everything(), r), http.StatusOK, c.want, c.host)
		})
	}
}
