package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Evidence that programs attach is one entry of what happened, with its kinds counted; what a person says has an entry of its
// own, and so has evidence of another release.
func TestAttachmentsAreFolded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	events, err := w.History(t.Context(), history.HistoryQuery{Model: first.Model, Environment: "staging", Kind: history.EventAttach})
	if err != nil || len(events) < 3 {
		t.Fatalf("got %d attachments and %v, want several to fold", len(events), err)
	}
	got := w.get(everything(), modelPage)
	wantPage(t, "promoted", got, http.StatusOK, "1.0.0 was promoted to prod", "1.0.0 was published in staging", "× parity report")
	folded := regexp.MustCompile(`\d+ statements were attached in staging: `)
	if n := len(folded.FindAllString(got.Body.String(), -1)); n == 0 || n > 2 {
		t.Errorf("the page has %d entries for %d attachments of one release, want 1, or 2 around the publication:\n%s", n, len(events), got.Body)
	}
	wantWithout(t, "promoted", got, "parity report was attached")

	w.AttachTo(t, "staging", first, first.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
	second := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	w.Prove(t, second)
	got = w.get(everything(), modelPage)
	wantPage(t, "in quarantine", got, http.StatusOK, "quarantine was attached in staging", "wrong labels", "2.0.0 was published in staging")
	for _, e := range events {
		wantWithout(t, "in quarantine", got, fmt.Sprintf(`attached in staging</a> <span class="quiet">by local user, event %d<`, e.Seq))
	}
}
