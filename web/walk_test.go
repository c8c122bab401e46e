package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/web"
	"mlpromote.dev/mlpromote/web/page"
)

// walker is people with browsers, and what they do: tools/pagecheck/walk.go says what can be done.
type walker struct {
	*world
	url   string
	db    *mem.DB
	steps []map[string]string
}

// walkable serves the pages of a registry with sign-in. Skips without a browser.
func walkable(t *testing.T) *walker {
	t.Helper()
	if os.Getenv("MLPROMOTE_PAGECHECK") == "" {
		t.Skip("MLPROMOTE_PAGECHECK: `make e2e-web` sets it")
	}
	db := mem.New()
	w := &walker{db: db}
	w.world = setupOn(t, db, withOperations, func(c *page.Config) {
		c.SignIn = &page.SignIn{Token: signin.TokenPath, With: signin.WithPath, Out: signin.OutPath}
	})
	gate, err := authn.New(t.Context(), authn.Config{Tokens: db, Secrets: db, Sessions: db})
	if err != nil {
		t.Fatal(err)
	}
	site := w.pages.(*web.Site)
	door := signin.New(signin.Config{Authenticator: gate, Issuers: func() *oidc.Identifier { return nil }, Refuse: site.RefuseSignIn})
	mux := http.NewServeMux()
	for _, pattern := range signin.Patterns() {
		mux.Handle(pattern, gate.Pages(door))
	}
	mux.HandleFunc("/api/v1/events", silent)
	mux.Handle("/", gate.Pages(site))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.url = server.URL
	return w
}

// silent is the stream of the API, in which nothing happens.
func silent(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/event-stream")
	out.WriteHeader(http.StatusOK)
	out.(http.Flusher).Flush() //nolint:forcetypeassert // that of net/http
	<-r.Context().Done()
}

// token makes a token of an administrator.
func (w *walker) token(t *testing.T, name string) string {
	t.Helper()
	token, text, err := access.Mint(name, everything().Grants, time.Now(), time.Time{})
	if err == nil {
		err = w.db.CreateToken(t.Context(), token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// do adds a step: what somebody does, with the rest of what the step needs.
func (w *walker) do(who, do, text string, name ...string) {
	step := map[string]string{"who": who, "do": do, "text": text}
	if len(name) > 0 {
		step["name"] = name[0]
	}
	w.steps = append(w.steps, step)
}

// signIn signs somebody in with a token, from a page that they want to see.
func (w *walker) signIn(t *testing.T, who, path string) {
	t.Helper()
	w.do(who, "open", w.url+path)
	w.do(who, "press", "Sign in")
	w.do(who, "type", w.token(t, who), "token")
	w.do(who, "press", "Sign in")
	w.do(who, "want", "as "+who)
}

// walk does the steps in Chromium, and wants that all can be done and that nothing is wrong meanwhile.
func (w *walker) walk(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steps.json")
	data, err := json.Marshal(w.steps)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), os.Getenv("MLPROMOTE_PAGECHECK"), "-walk", file).CombinedOutput(); err != nil {
		t.Errorf("%v: want that every step can be done:\n%s", err, out)
	}
}

// Somebody signs in, lands where they wanted to go, and decides everything without JavaScript.
func TestDecideWithoutScripts(t *testing.T) {
	t.Parallel()
	w := walkable(t)
	w.Promoted(t, registrytest.Build{})
	w.Prove(t, w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"}))
	w.do("ana", "scripts", "off")
	w.signIn(t, "ana", promotePage)
	w.do("ana", "want", "may be promoted")
	w.do("ana", "press", "Promote")
	w.do("ana", "want", "Every requirement is decided again")
	w.do("ana", "type", "sharper digits", "reason")
	w.do("ana", "press", "Promote")
	w.do("ana", "want", "2.0.0 was promoted to prod: sharper digits by ana")
	w.do("ana", "press", "Roll back")
	w.do("ana", "want", "prod goes back to 1.0.0")
	w.do("ana", "type", "p99 doubled", "reason")
	w.do("ana", "press", "Roll back")
	w.do("ana", "want", "prod was rolled back to 1.0.0: p99 doubled")
	w.do("ana", "press", "Release the hold")
	w.do("ana", "type", "it was the network", "reason")
	w.do("ana", "press", "Release the hold")
	w.do("ana", "press", "Hold promotions")
	w.do("ana", "type", "until the audit", "reason")
	w.do("ana", "press", "Hold promotions")
	w.do("ana", "want", "until the audit")
	w.do("ana", "press", "Quarantine")
	w.do("ana", "type", "wrong labels", "reason")
	w.do("ana", "press", "Quarantine")
	w.do("ana", "want", "in quarantine")
	w.do("ana", "fits", "")
	w.walk(t)
	if now := w.head(t); now.Version != "1.0.0" || now.Hold != "until the audit" {
		t.Errorf("prod has %+v, want 1.0.0 held until the audit", now)
	}
}

// A session that ends loses nothing that was typed, and nothing is done without one.
func TestSessionEndsWhileTyping(t *testing.T) {
	t.Parallel()
	w := walkable(t)
	w.Promoted(t, registrytest.Build{})
	form := actOnProd + "?" + url.Values{"action": {"hold"}}.Encode()
	w.signIn(t, "ana", form)
	w.do("ana", "type", "the audit & its questions", "reason")
	w.do("ana", "forget", "")
	w.do("ana", "press", "Hold promotions")
	w.do("ana", "want", "nothing was done")
	w.do("ana", "want", "the audit & its questions")
	w.do("ana", "press", "Sign in")
	w.do("ana", "type", w.token(t, "ana-again"), "token")
	w.do("ana", "press", "Sign in")
	w.do("ana", "value", "the audit & its questions", "reason")
	w.do("ana", "press", "Hold promotions")
	w.do("ana", "want", "the audit & its questions")
	w.walk(t)
	if now := w.head(t); now.Hold != "the audit & its questions" {
		t.Errorf("prod is held for %q, want what was typed before the session ended", now.Hold)
	}
}

// Of two people who decide at once in two browsers, the second sees what the first one did, and what they typed themselves.
func TestTwoPeopleInBrowsers(t *testing.T) {
	t.Parallel()
	w := walkable(t)
	w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "1"})
	w.Prove(t, w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"}))
	w.signIn(t, "ana", promotePage)
	w.do("ana", "press", "Promote")
	w.signIn(t, "ben", modelPage)
	w.do("ben", "press", "Roll back")
	w.do("ben", "type", "readings are wrong", "reason")
	w.do("ben", "press", "Roll back")
	w.do("ben", "want", "prod was rolled back to 1.0.0")
	w.do("ana", "type", "for the fair", "reason")
	w.do("ana", "press", "Promote")
	w.do("ana", "want", "It was not done")
	w.do("ana", "want", "readings are wrong")
	w.do("ana", "value", "for the fair", "reason")
	w.do("ana", "press", "Cancel")
	w.do("ana", "want", "prod was rolled back to 1.0.0: readings are wrong by ben")
	w.walk(t)
	if now := w.head(t); now.Version != "1.0.0" {
		t.Errorf("prod has %s, want that the second decision changed nothing", now.Version)
	}
}
