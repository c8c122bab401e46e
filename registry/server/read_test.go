package server_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
)

var nextLink = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// walk reads a list from a path to its end, and wants pages of at most limit things.
func walk[T any](t *testing.T, w *world, path string, limit int) []T {
	t.Helper()
	var all []T
	for path != "" {
		var some []T
		got := w.do("GET", path, "")
		if want(t, got, http.StatusOK, &some); len(some) > limit {
			t.Fatalf("%s gives %d things, want at most %d", path, len(some), limit)
		}
		all = append(all, some...)
		path = ""
		if link := nextLink.FindStringSubmatch(got.Header().Get("Link")); link != nil {
			path = link[1]
		}
	}
	return all
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.Build(t, registrytest.Build{Model: "a"})
	for _, name := range []string{"x", "y/z", "a:1"} {
		if err := w.config.NodeTypes.Put(t.Context(), name, registrytest.Node("v3")); err != nil {
			t.Fatal(err)
		}
	}
	events := walk[history.Event](t, w, "/api/v1/history?limit=1000", 1000)
	for path, n := range map[string]int{
		"/api/v1/models?": 2, "/api/v1/models?environment=prod&": 1, "/api/v1/node-types?": 4, "/api/v1/node-types?after=box&": 2,
		"/api/v1/history?": len(events), "/api/v1/history?order=desc&": len(events), "/api/v1/history?after=3&": len(events) - 3, "/api/v1/history?before=3&order=desc&": 2,
		model + "releases?environment=staging&": 2, model + "promotions?": 1, model + "promotions?environment=staging&": 0,
	} {
		for limit, text := range map[int]string{1: "limit=1", 2: "limit=2", 100: ""} {
			if got := walk[json.RawMessage](t, w, path+text, limit); len(got) != n {
				t.Errorf("%s%s has %d things, want %d", path, text, len(got), n)
			}
		}
	}
	down := walk[history.Event](t, w, "/api/v1/history?order=desc&limit=2", 2)
	for i, e := range down {
		if e.Seq != int64(len(events)-i) {
			t.Errorf("event %d from the end is %d", i, e.Seq)
		}
	}
	if heads := walk[history.Head](t, w, "/api/v1/heads?limit=1", 2); len(heads) != 3 || heads[0].Model != "a" {
		t.Errorf("heads are %+v", heads)
	}
}

func TestReleaseInParts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	var engines []artifact.Engine
	want(t, w.do("GET", model+"engines?environment=prod", ""), http.StatusOK, &engines)
	if len(engines) != len(release.Engines) {
		t.Fatalf("%d engines, want %d", len(engines), len(release.Engines))
	}
	var engine artifact.Engine
	got := w.do("GET", model+"engine?environment=prod&digest="+string(engines[1].Digest), "")
	if want(t, got, http.StatusOK, &engine); engine.Label() != engines[1].Label() || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("%v %+v", got.Header(), engine)
	}
	var evidence struct {
		Claims []struct{ Bundle registry.Digest }
	}
	want(t, w.do("GET", model+"evidence?environment=prod", ""), http.StatusOK, &evidence)
	if len(evidence.Claims) == 0 {
		t.Fatal("there is no evidence")
	}
	d := string(evidence.Claims[0].Bundle)
	bundle := w.do("GET", model+"bundle?environment=prod&digest="+d, "")
	stored, err := w.Interface.Bundle(t.Context(), "prod", registrytest.Model, evidence.Claims[0].Bundle)
	if err != nil || bundle.Code != http.StatusOK || bundle.Body.String() != string(stored.Data) ||
		bundle.Header().Get("Content-Type") != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		t.Errorf("%d %v, error %v", bundle.Code, bundle.Header(), err)
	}
	wantProblem(t, "no digest", w.do("GET", model+"bundle?environment=prod", ""), http.StatusBadRequest, registry.CodeInvalid)
	wantProblem(t, "an engine is no bundle", w.do("GET", model+"bundle?environment=prod&digest="+string(engine.Digest), ""),
		http.StatusNotFound, registry.CodeNotFound)
}

func TestTargets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	for range 2 { // read, and remembered
		var uses []struct {
			Target  artifact.Target
			Engines []struct{ Environment, Model, Version, Variant string }
		}
		want(t, w.do("GET", "/api/v1/targets", ""), http.StatusOK, &uses)
		count := 0
		for _, u := range uses {
			count += len(u.Engines)
		}
		if len(uses) != 2 || uses[0].Target.Name != "linux-amd64-v1" || count != 6 || uses[0].Engines[0].Version != "1.0.0" {
			t.Errorf("targets are %+v", uses)
		}
		want(t, w.do("GET", "/api/v1/targets?environment=prod", ""), http.StatusOK, &uses)
		if len(uses) != 2 || len(uses[1].Engines) != 2 {
			t.Errorf("targets of prod are %+v", uses)
		}
	}
}

func TestPromotionsAreEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	promotions := walk[history.Event](t, w, model+"promotions", 100)
	var one history.Event
	want(t, w.do("GET", "/api/v1/promotions/"+seq(promotions[0]), ""), http.StatusOK, &one)
	if one.Release != release.Digest || one.Kind != history.EventPromote || one.Environment != "prod" {
		t.Errorf("the promotion is %+v", one)
	}
	for _, absent := range []string{"1", "0", "x", "99", "-1", ""} {
		wantProblem(t, "promotion "+absent, w.do("GET", "/api/v1/promotions/"+absent, ""), http.StatusNotFound, registry.CodeNotFound)
	}
}

func seq(e history.Event) string {
	text, _ := json.Marshal(e.Seq)
	return string(text)
}

func TestVerification(t *testing.T) {
	t.Parallel()
	forged := false
	w := setup(t, func(c *server.Config) {
		events := c.History
		c.History = func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
			return func(yield func(history.Event, error) bool) {
				for e, err := range events(ctx, q) {
					if e.Seq == 3 && forged {
						e.Reason = "another"
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}
	})
	w.Promoted(t, registrytest.Build{})
	events := walk[history.Event](t, w, "/api/v1/history", 100)
	last := events[len(events)-1]
	var got struct {
		Intact bool
		Events int64
		Last   registry.Digest
		Fault  string
	}
	if want(t, w.do("GET", "/api/v1/history/verification", ""), http.StatusOK, &got); !got.Intact ||
		got.Events != last.Seq || got.Last != last.Hash || got.Fault != "" {
		t.Errorf("an intact history is %+v", got)
	}
	forged, got.Last = true, ""
	if want(t, w.do("GET", "/api/v1/history/verification", ""), http.StatusOK, &got); got.Intact ||
		got.Events != 2 || got.Last != events[1].Hash || !strings.Contains(got.Fault, "event 3") {
		t.Errorf("a forged history is %+v", got)
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	const resolve = model + "resolve?environment=prod&nodeType=box&runtime=onnxruntime:1.30.0"
	for _, path := range []string{"/api/v1/heads", "/api/v1/models", "/api/v1/environments", "/api/v1/history",
		"/api/v1/node-types/box", model + "releases?environment=prod", model + "release?environment=prod", resolve} {
		first := w.do("GET", path, "")
		tag := first.Header().Get("ETag")
		if first.Code != http.StatusOK || len(tag) < 10 || first.Header().Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: %d %v", path, first.Code, first.Header())
		}
		for _, sent := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			got := w.do("GET", path, "", "If-None-Match", sent)
			if got.Code != http.StatusNotModified || got.Body.Len() != 0 || got.Header().Get("ETag") != tag || got.Header().Get("Content-Type") != "" {
				t.Errorf("%s with %s: %d %v %s", path, sent, got.Code, got.Header(), got.Body)
			}
		}
		if got := w.do("GET", path, "", "If-None-Match", `"other"`); got.Code != http.StatusOK || got.Body.String() != first.Body.String() {
			t.Errorf("%s has changed: %d", path, got.Code)
		}
		if got := w.do("HEAD", path, ""); got.Code != http.StatusOK || got.Body.Len() != 0 ||
			got.Header().Get("ETag") != tag || got.Header().Get("Content-Length") != strconv.Itoa(first.Body.Len()) {
			t.Errorf("HEAD %s: %d %v", path, got.Code, got.Header())
		}
	}
	text := w.do("GET", resolve, "", "Accept", "text/plain")
	if json := w.do("GET", resolve, ""); text.Header().Get("ETag") == json.Header().Get("ETag") ||
		!strings.Contains(strings.Join(text.Header().Values("Vary"), ","), "Accept") {
		t.Errorf("two forms have one tag: %v", text.Header())
	}
	if got := w.do("GET", "/api/v1/heads?environment=moon", "", "If-None-Match", "*"); got.Code != http.StatusNotFound ||
		got.Header().Get("ETag") != "" {
		t.Errorf("an error has a tag: %d %v", got.Code, got.Header())
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	plain := w.do("GET", "/api/v1/history", "")
	for accept, zipped := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "*": false,
		"gzip;q=0": false, "identity": false, "": false, "gzip;q=0.2, identity;q=0.5": false} {
		got := w.do("GET", "/api/v1/history", "", "Accept-Encoding", accept)
		if (got.Header().Get("Content-Encoding") == "gzip") != zipped ||
			!strings.Contains(strings.Join(got.Header().Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("Accept-Encoding %q: %v", accept, got.Header())
		}
		if body := unzipped(t, got); body != plain.Body.String() {
			t.Errorf("Accept-Encoding %q: another body: %.80s", accept, body)
		}
		tag := got.Header().Get("ETag")
		if zipped == (tag == plain.Header().Get("ETag")) {
			t.Errorf("Accept-Encoding %q: the tag is %s", accept, tag)
		}
		if again := w.do("GET", "/api/v1/history", "", "Accept-Encoding", accept, "If-None-Match", tag); again.Code != http.StatusNotModified {
			t.Errorf("Accept-Encoding %q: %d", accept, again.Code)
		}
	}
	if got := w.do("GET", "/api/v1/node-types/box", "", "Accept-Encoding", "gzip"); got.Header().Get("Content-Encoding") != "" {
		t.Error("a short answer is compressed")
	}
}

func unzipped(t *testing.T, got *httptest.ResponseRecorder) string {
	t.Helper()
	var r io.Reader = got.Body
	if got.Header().Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		r = zip
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *server.Config) { c.Registry = broken{c.Registry} })
	got := w.do("GET", "/api/v1/heads", "", "X-Request-Id", "mine.1")
	if p := wantProblem(t, "heads", got, http.StatusInternalServerError, registry.CodeInternal); p.RequestID != "mine.1" ||
		got.Header().Get("X-Request-Id") != "mine.1" || !strings.Contains(w.log.String(), "request=mine.1") {
		t.Errorf("the request is called %q, %q, and in the log %s", p.RequestID, got.Header().Get("X-Request-Id"), w.log)
	}
	seen := make(map[string]bool)
	for _, given := range []string{"", "with space", "a\nb", `"`, strings.Repeat("x", 129)} {
		got := w.do("GET", "/api/v1/models/", "", "X-Request-Id", given)
		id := got.Header().Get("X-Request-Id")
		if p := wantProblem(t, given, got, http.StatusNotFound, registry.CodeNotFound); id != p.RequestID || id == given || len(id) < 16 || seen[id] {
			t.Errorf("%q: the request is called %q and %q", given, id, p.RequestID)
		}
		seen[id] = true
	}
}
