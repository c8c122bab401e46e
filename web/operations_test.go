package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/web/page"
)

// looked is what an administrator looks after, with something of everything.
func looked() api.Operations {
	now := time.Now().UTC()
	builder := api.NewKeyUse(registrytest.Chain(), trust.TrustEntry{
		Key: "keys/builder.pub", Roles: []evidence.Role{evidence.RoleBuilder}, Resources: []string{"oci://local/prod/"}}, strings.Repeat("ab", 32))
	builder.Statements, builder.Last = 7, now
	return api.Operations{
		At: now, Version: "1.2.3",
		Content: &storage.ContentUse{
			At: now, Storage: "directory", Repositories: 3, Manifests: 12, Blobs: 5, Bytes: 3 << 20, Marked: 2,
			Largest: []storage.RepositoryUse{{Repository: "staging/vision/digits", Bytes: 2 << 20}}},
		Damaged: []storage.Damage{{
			Digest: registry.Digest("sha256:" + strings.Repeat("1", 64)), Kind: storage.DamageMissing, Detail: "no <file>", Found: now,
			Releases: []storage.AffectedRelease{{Environment: "prod", Model: "vision/digits", Tags: []string{"1.0.0"}}}}},
		DamagedCount: 1,
		Collection:   &storage.CollectionRun{Ended: now, Manifests: 4, Blobs: 3, Bytes: 1 << 10, Skipped: []string{"prod/a: damaged"}},
		Moves:        []storage.PendingMove{{Environment: "prod", Model: "vision/digits", From: "staging", Begun: now}},
		Uploads:      2,
		Replicas: []storage.Replica{
			{Name: "one", Host: "pod-1", Version: "1.2.3", Started: now, Seen: now, Configuration: history.ConfigurationAgreed, CollectEvery: time.Hour},
			{Name: "two", Host: "pod-2", Seen: now.Add(-time.Hour), Configuration: history.ConfigurationDiffers}},
		Keys: []api.KeyUse{builder, {Name: "identity https://id.example.com ana", Roles: []evidence.Role{evidence.RoleApprover}, State: evidence.KeyRevoked}},
		Webhooks: []api.WebhookUse{
			{URL: "https://example.com/hook", Delivered: 9, Kinds: []history.EventKind{history.EventPromote}},
			{URL: "https://example.com/late", Delivered: 4, Waiting: 5, Attempts: 2, LastError: "503 <busy>"},
			{URL: "https://example.com/off", Suspended: true}},
	}
}

func withOperations(c *page.Config) {
	c.Operations = func(context.Context) (api.Operations, error) { return looked(), nil }
}

// Administrators see what they look after; others see why they do not, and nothing of it.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	w := setup(t, withOperations)
	got := w.get(everything(), "/operations")
	wantPage(t, "administrator", got, http.StatusOK,
		"3 MiB in a directory", "12 manifests, 5 blobs", "every 1 h", "4 manifests, 3 blobs, 1 KiB", "prod/a: damaged", "2 records that nothing needs",
		"missing: no &lt;file&gt;", "prod/vision/digits:1.0.0", "promotion to prod", "2 blobs", "1 webhook behind",
		"keys/builder.pub", "signature, provenance", `<span class="whole">prod</span>`, `href="/history?signer=`+strings.Repeat("ab", 32)+`"`, "revoked", "not counted",
		"up to event 9", "2 failed attempts", "503 &lt;busy&gt;", "stopped", "pod-1", "agreed", "lost", "differs", "staging/vision/digits",
		`href="/api/v1/operations"`, `<a href="/operations" aria-current="page">Operations</a>`)
	for name, caller := range map[string]*storage.Principal{
		"reader": may("**", "**", storage.PermissionRead), "administrator of some models": may("**", "vision/**", storage.PermissionAdminister),
	} {
		got := w.get(caller, "/operations")
		wantPage(t, name, got, http.StatusForbidden, "You may not see this", "may not administer")
		wantWithout(t, name, got, "keys/builder.pub", "example.com/hook", "pod-1")
	}
	wantPage(t, "unknown caller", w.get(nil, "/operations"), http.StatusUnauthorized, "Sign in")

	without := setup(t)
	wantPage(t, "a service without operations", without.get(everything(), "/operations"), http.StatusNotFound)
	wantWithout(t, "a service without operations", without.get(everything(), "/"), ">Operations<")
	faulty := setup(t, func(c *page.Config) {
		c.Operations = func(context.Context) (api.Operations, error) {
			return api.Operations{}, errors.New("dial /srv/secret")
		}
	})
	got = faulty.get(everything(), "/operations")
	wantPage(t, "a fault", got, http.StatusInternalServerError, "cannot be shown now")
	wantWithout(t, "a fault", got, "/srv/secret")
}

// The history of a key has what it signed of all releases, and that of a caller what they did. A search finds callers.
func TestHistoryOfKeysAndCallers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	w.Promoted(t, registrytest.Build{Model: "text/tickets", Salt: "s"})
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
	if err != nil || len(events) != 2 || events[0].Signer == "" {
		t.Fatalf("promotions are %v, error %v, want two that name the promoter's key", events, err)
	}
	got := w.get(everything(), "/history?signer="+events[0].Signer)
	wantPage(t, "promoter", got, http.StatusOK, "Signed by the key", "vision/digits", "text/tickets", "was promoted to prod", `name="signer" value="`+events[0].Signer+`"`)
	wantWithout(t, "promoter", got, "provenance was attached")
	wantPage(t, "a key that signed nothing", w.get(everything(), "/history?signer=nobody"), http.StatusOK, "No event that you may see fits")

	if err := w.SetHold(storage.WithPrincipal(t.Context(), *everything()), "prod", "vision/digits", "until the audit"); err != nil {
		t.Fatal(err)
	}
	got = w.get(everything(), "/history?principal=token%3Ajane")
	wantPage(t, "caller", got, http.StatusOK, `Done by <span class="person">jane</span>`, "prod was held")
	wantWithout(t, "caller", got, "was promoted")
	wantPage(t, "search for a caller", w.get(everything(), "/search?q=jan"), http.StatusOK, `href="/history?principal=token%3Ajane"`)
	wantPage(t, "search for a target", w.get(everything(), "/search?q=amd64-v3"), http.StatusOK, "engine in prod", "linux-amd64-v3/int8")
	wantPage(t, "search for a toolchain", w.get(everything(), "/search?q=onnxruntime"), http.StatusOK, "engine in staging", "text/tickets")
	wantWithout(t, "reader of other models", w.get(may("**", "vision/*", storage.PermissionRead), "/search?q=onnxruntime"), "text/tickets")
}
