package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A quarantine that is signed and posted in staging stands in prod, and is listed with its
// reason until what lifts it is posted.
func TestQuarantinesOverREST(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	e := r.Engines[0]
	service := httptest.NewServer(w.handler)
	t.Cleanup(service.Close)
	c, err := client.New(client.Config{URL: service.URL, Content: w.Parts.(storage.Content), HTTP: service.Client()})
	if err != nil {
		t.Fatal(err)
	}
	listed := func(environment string, want int) []rest.Quarantine {
		t.Helper()
		found, err := c.Quarantines(t.Context(), environment, r.Model, "1.0.0")
		if err != nil || len(found) != want {
			t.Fatalf("quarantines in %s: %+v, error %v, want %d", environment, found, err, want)
		}
		return found
	}
	post := func(predicate evidence.Quarantine) {
		t.Helper()
		body, err := json.Marshal(api.Attachment{Environment: "staging", Release: r.Digest, Subject: e.Digest,
			Bundle: w.Bundle(t, "approver", evidence.PredicateQuarantine, predicate, e.Digest)})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.post(rest.ModelsPath+r.Model+"/"+rest.OpEvidence, string(body)); got.Code != http.StatusCreated {
			t.Fatalf("attach: %d %s", got.Code, got.Body)
		}
	}
	listed("prod", 0)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	post(evidence.Quarantine{Reason: "crashes", IssuedOn: at})
	listed("staging", 1)
	q := listed("prod", 1)[0]
	if q.Subject != e.Digest || q.Label != e.Label() || q.Reason != "crashes" || !q.IssuedOn.Equal(at) || q.Signer == "" || q.RecordedAt.IsZero() {
		t.Errorf("the quarantine is %+v, want that of %s", q, e.Label())
	}
	post(evidence.Quarantine{Reason: "the driver was at fault", IssuedOn: at, Lifts: []registry.Digest{q.Bundle}})
	listed("prod", 0)
}
