package web_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

const actOnProd = "/environments/prod/act/vision/digits"

// post sends a form about prod as a browser does.
func (w *world) post(as *storage.Principal, fields url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, actOnProd, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.do(as, r)
}

var inputs = regexp.MustCompile(`<input [^>]*name="([^"]*)" value="([^"]*)"`)

// filled are the fields that the form of a page sends, without the search.
func filled(page *httptest.ResponseRecorder) url.Values {
	all := url.Values{}
	for _, input := range inputs.FindAllStringSubmatch(page.Body.String(), -1) {
		if input[1] != "q" {
			all.Set(input[1], html.UnescapeString(input[2]))
		}
	}
	return all
}

var buttons = regexp.MustCompile(`<a class="button" href="([^"]*)">([^<]*)</a>`)

// offered are the addresses of forms that a page offers, by what their links say.
func offered(page *httptest.ResponseRecorder) map[string]string {
	all := make(map[string]string)
	for _, link := range buttons.FindAllStringSubmatch(page.Body.String(), -1) {
		all[link[2]] = html.UnescapeString(link[1])
	}
	return all
}

// head is that of prod.
func (w *world) head(t *testing.T) history.Head {
	t.Helper()
	heads, err := w.Heads(t.Context(), "prod", "vision/digits")
	if err != nil || len(heads) != 1 {
		t.Fatalf("heads %v, error %v, want one", heads, err)
	}
	return heads[0]
}

func wantDone(t *testing.T, what string, got *httptest.ResponseRecorder) {
	t.Helper()
	if got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/models/vision/digits?environment=prod" {
		t.Fatalf("%s: got %d to %q, want 303 to the model:\n%s", what, got.Code, got.Header().Get("Location"), got.Body)
	}
}

// Everything that is decided about a head is decided by two requests, of which the first says what follows.
func TestDecideOnPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: registrytest.Engines()[1:]})
	w.Prove(t, second)

	form := w.get(everything(), offered(w.get(everything(), "/environments/prod/promote/vision/digits"))["Promote"])
	wantPage(t, "promotion", form, http.StatusOK, "Promote vision/digits to prod", "It is about", ">2.0.0</a>", "In prod now", "1.0.0", "Every requirement is decided again")
	promotion := filled(form)
	promotion.Set("reason", "sharper <digits>")
	wantDone(t, "promotion", w.post(everything(), promotion))
	wantPage(t, "model after the promotion", w.get(everything(), modelPage), http.StatusOK, "2.0.0 was promoted to prod</a>: sharper &lt;digits&gt;")
	if got := w.head(t); got.Release != second.Digest {
		t.Fatalf("prod has %s, want %s", got.Release, second.Digest)
	}

	form = w.get(everything(), offered(w.get(everything(), modelPage))["Roll back"])
	wantPage(t, "rollback", form, http.StatusOK, "prod goes back to 1.0.0 and is held there")
	fields := filled(form)
	wantPage(t, "rollback without a reason", w.post(everything(), fields), http.StatusBadRequest, "It was not done", "want 1 to 500")
	fields.Set("reason", "p99 <doubled>")
	wantDone(t, "rollback", w.post(everything(), fields))
	if got := w.head(t); got.Release != first.Digest || !strings.Contains(got.Hold, "p99 <doubled>") {
		t.Fatalf("prod has %+v, want the first release, held", got)
	}

	form = w.get(everything(), offered(w.get(everything(), modelPage))["Release the hold"])
	fields = filled(form)
	fields.Set("reason", "it was the network")
	wantDone(t, "release of the hold", w.post(everything(), fields))
	form = w.get(everything(), offered(w.get(everything(), modelPage))["Hold promotions"])
	fields = filled(form)
	fields.Set("reason", "until the audit")
	wantDone(t, "hold", w.post(everything(), fields))
	if got := w.head(t); got.Hold != "until the audit" {
		t.Errorf("prod is held for %q, want the reason of the form", got.Hold)
	}
	events, err := w.History(t.Context(), history.HistoryQuery{Environment: "prod", Descending: true, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []history.EventKind{history.EventHoldSet, history.EventHoldRelease, history.EventRollback} {
		if events[i].Kind != want || events[i].Principal != "token:jane" {
			t.Errorf("event %d: got %s by %q, want %s by the person who decided", events[i].Seq, events[i].Kind, events[i].Principal, want)
		}
	}
}

// Of two people who decide at once, the second sees what happened, and decides again about that.
func TestSecondDecisionSeesTheFirst(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{Version: "0.9.0", Salt: "0"})
	w.Promoted(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	w.Prove(t, second)
	form := w.get(everything(), offered(w.get(everything(), "/environments/prod/promote/vision/digits"))["Promote"])
	rollback := w.get(everything(), offered(w.get(everything(), modelPage))["Roll back"])

	third := w.Promoted(t, registrytest.Build{Version: "1.5.0", Salt: "3"})
	got := w.post(everything(), filled(form))
	wantPage(t, "promotion after another one", got, http.StatusConflict, "It was not done", "1.5.0", "not what you saw")
	back := filled(rollback)
	back.Set("reason", "typed & kept")
	late := w.post(everything(), back)
	wantPage(t, "rollback after another promotion", late, http.StatusConflict, "It was not done", `value="typed &amp; kept"`)
	if now := w.head(t); now.Release != third.Digest {
		t.Fatalf("prod has %s, want what the first decision put there", now.Version)
	}
	wantDone(t, "promotion, decided again", w.post(everything(), filled(got)))
	if now := w.head(t); now.Release != second.Digest {
		t.Errorf("prod has %s, want 2.0.0", now.Version)
	}
	wantDone(t, "the same form twice", w.post(everything(), filled(got)))
}

// What somebody may not do is not offered, says why, and is refused if they send the form all the same.
func TestDecideWithoutPermission(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Prove(t, w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"}))
	reader := may("**", "**", storage.PermissionRead)
	for _, page := range []string{modelPage, "/environments/prod/promote/vision/digits"} {
		got := w.get(reader, page)
		wantPage(t, page, got, http.StatusOK, "You do not have the permission")
		if links := offered(got); len(links) > 0 {
			t.Errorf("%s offers %v to somebody who may only read", page, links)
		}
	}
	for _, action := range []string{"promote", "rollback", "hold", "release-hold", "approve", "withdraw", "quarantine"} {
		fields := url.Values{"action": {action}, "release": {string(first.Digest)}, "replaces": {string(first.Digest)}, "reason": {"because"}}
		got := w.post(reader, fields)
		if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "It was not done") {
			t.Errorf("%s: got %d, want 403 and the page that says so", action, got.Code)
		}
		got = w.post(nil, fields)
		wantPage(t, action+" without a session", got, http.StatusUnauthorized, "nothing was done", "You typed: <q>because</q>")
	}
	if now := w.head(t); now.Release != first.Digest || now.Hold != "" {
		t.Errorf("prod has %+v, want what was there", now)
	}
}

func TestHostileForms(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	for name, c := range map[string]struct {
		fields url.Values
		status int
	}{
		"no action":          {url.Values{"reason": {"x"}}, http.StatusNotFound},
		"an unknown action":  {url.Values{"action": {"delete"}}, http.StatusNotFound},
		"no digest":          {url.Values{"action": {"promote"}, "release": {"latest"}}, http.StatusBadRequest},
		"a long reason":      {url.Values{"action": {"hold"}, "reason": {strings.Repeat("a", 501)}}, http.StatusBadRequest},
		"a long form":        {url.Values{"action": {"hold"}, "reason": {strings.Repeat("a", 20<<10)}}, http.StatusBadRequest},
		"control characters": {url.Values{"action": {"hold"}, "reason": {"a\x1b[31mb"}}, http.StatusBadRequest},
	} {
		if got := w.post(everything(), c.fields); got.Code != c.status {
			t.Errorf("%s: got %d, want %d", name, got.Code, c.status)
		}
	}
	if now := w.head(t); now.Hold != "" {
		t.Errorf("prod is held for %q, want nothing done", now.Hold)
	}
	if got := w.get(everything(), actOnProd+"?action=approve&release=sha256:"+strings.Repeat("0", 64)); got.Code != http.StatusNotFound {
		t.Errorf("a form about a release that there is not: got %d, want 404", got.Code)
	}
	if got := w.get(everything(), actOnProd+"?action=hold&reason="+url.QueryEscape(`"><script>`)); strings.Contains(got.Body.String(), `"><script>`) {
		t.Error("the form repeats a script of its address")
	}
	if got := w.get(everything(), actOnProd+"?action=hold"); got.Code != http.StatusOK || w.head(t).Hold != "" {
		t.Errorf("showing the form: got %d, hold %q, want the form and nothing done", got.Code, w.head(t).Hold)
	}
}

// A form that could only be refused says why, and has no button.
func TestNothingToRollBackTo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	form := w.get(everything(), offered(w.get(everything(), modelPage))["Roll back"])
	wantPage(t, "rollback of the first release", form, http.StatusOK, "It is refused as things are", "no earlier head")
	wantWithout(t, "rollback of the first release", form, "<button>Roll back")
}

// What the service signs for a person, it signs for whoever is signed in, under the rules of the environment.
func TestPersonDecides(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	ana := everything()
	ana.Person = evidence.Person{Principal: ana.Name, Token: "jane"}
	form := w.get(ana, offered(w.get(ana, modelPage))["Quarantine"])
	wantPage(t, "quarantine", form, http.StatusOK, "Quarantine", "Nodes are no longer given this release")
	fields := filled(form)
	fields.Set("reason", "wrong labels")
	wantDone(t, "quarantine", w.post(ana, fields))
	wantPage(t, "model", w.get(ana, modelPage), http.StatusOK, "in quarantine", "wrong labels")
	engines, err := w.Resolve(t.Context(), api.ResolveQuery{Environment: "prod", Model: first.Model, Node: registrytest.Node("v3")})
	if err == nil {
		t.Errorf("a node is given %v of a release in quarantine", engines.Engine)
	}
}
