package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// hook is a webhook as it is shown.
type hook struct {
	ID, URL, Environment, Secret, LastError string
	Kinds                                   []string
	Delivered                               int64
	Attempts                                int
	Suspended                               bool
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	var made, got hook
	answer := w.post("/api/v1/webhooks", `{"url":"https://example.com/hook?token=x","environment":"prod","kinds":["promote"]}`)
	if want(t, answer, http.StatusCreated, &made); !strings.HasPrefix(made.Secret, "whsec_") ||
		len(made.Secret) < 40 || made.Delivered == 0 || answer.Header().Get("Location") != "/api/v1/webhooks/"+made.ID {
		t.Errorf("made is %+v with %v", made, answer.Header())
	}
	path := "/api/v1/webhooks/" + made.ID
	shown := w.do("GET", path, "")
	if want(t, shown, http.StatusOK, &got); got.URL != made.URL || got.Environment != "prod" ||
		strings.Contains(shown.Body.String(), "secret") || strings.Contains(shown.Body.String(), strings.TrimPrefix(made.Secret, "whsec_")) {
		t.Errorf("shown is %s", shown.Body)
	}
	list := w.do("GET", "/api/v1/webhooks", "")
	var all []hook
	if want(t, list, http.StatusOK, &all); len(all) != 1 || strings.Contains(list.Body.String(), "secret") {
		t.Errorf("listed are %s", list.Body)
	}
	// Who delivers has given up.
	state := storage.Delivery{Delivered: 2, Attempts: 20, LastError: "it answered 500", Suspended: time.Now().Add(-time.Minute)}
	if err := w.config.Deliveries.Put(t.Context(), made.ID, state); err != nil {
		t.Fatal(err)
	}
	if want(t, w.do("GET", path, ""), http.StatusOK, &got); !got.Suspended ||
		got.Attempts != 20 || got.LastError != state.LastError || got.Delivered != 2 {
		t.Errorf("the state is %+v", got)
	}
	got = hook{}
	put := w.do(http.MethodPut, path, `{"url":"https://example.com/other"}`, "Content-Type", "application/json")
	if want(t, put, http.StatusOK, &got); got.Suspended || got.URL != "https://example.com/other" || got.Environment != "" {
		t.Errorf("changed is %+v", got)
	}
	stored, err := w.config.Webhooks.Get(t.Context(), made.ID)
	if err != nil || stored.SecretText() != made.Secret {
		t.Errorf("the secret has changed, %v", err)
	}
	if code := w.do(http.MethodDelete, path, "").Code; code != http.StatusNoContent {
		t.Errorf("deleted: %d", code)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		wantProblem(t, method, w.do(method, path, ""), http.StatusNotFound, registry.CodeNotFound)
	}
	if left, err := w.config.Deliveries.List(t.Context(), "", 10); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestWebhooksRefuse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, body := range []string{
		`{}`, `{"url":"http://example.com"}`, `{"url":"https://127.0.0.1/"}`, `{"url":"https://[::1]/"}`, `{"url":"https://169.254.169.254/latest"}`, `{"url":"https://u:p@example.com"}`,
		`{"url":"https://example.com","kinds":["everything"]}`, `{"url":"https://example.com","secret":"mine"}`,
		`{"url":"https://example.com","environment":"moon"}`, `{"url":"https://example.com","model":"Vision digits"}`,
	} {
		wantProblem(t, body, w.post("/api/v1/webhooks", body), http.StatusBadRequest, registry.CodeInvalid)
	}
	got := w.do(http.MethodPut, "/api/v1/webhooks/none", `{"url":"https://example.com"}`, "Content-Type", "application/json")
	wantProblem(t, "none", got, http.StatusNotFound, registry.CodeNotFound)
}
