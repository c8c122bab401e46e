package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Whoever decides on a page decides about the release that it shows, so a form without one is refused.
func TestFormNamesItsRelease(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	w.Prove(t, w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2"}))
	for _, action := range []string{"promote", "approve", "withdraw", "quarantine"} {
		fields := url.Values{"action": {action}, "replaces": {string(first.Digest)}, "reason": {"it is time"}}
		wantPage(t, action+", form", w.get(everything(), actOnProd+"?"+fields.Encode()), http.StatusBadRequest, "names no release")
		wantPage(t, action, w.post(everything(), fields), http.StatusBadRequest, "names no release")
	}
	if now := w.head(t); now.Release != first.Digest {
		t.Errorf("prod has %s, want that nothing moved it", now.Version)
	}
}

// Where staging has another release by now, the form says so, and what its own release gives to nodes.
func TestFormOfAnotherReleaseThanStagings(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	lacking := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: []artifact.Engine{registrytest.MakeEngine("v4", "fp32")}})
	w.Prove(t, lacking)
	link := actOnProd + "?" + url.Values{"action": {"promote"}, "release": {string(lacking.Digest)}, "replaces": {string(first.Digest)}}.Encode()
	wantPage(t, "while staging has it", w.get(everything(), link), http.StatusOK, "no engine fits")
	w.Prove(t, w.Build(t, registrytest.Build{Version: "3.0.0", Salt: "3"}))
	wantPage(t, "when staging has another", w.get(everything(), link), http.StatusOK, "another release by now, 3.0.0", "no engine fits")
}

// A rollback goes where the form said, although another release came between and the head is the same again.
func TestRollbackGoesWhereTheFormSaid(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{Version: "1.0.0", Salt: "1"})
	second := w.Promoted(t, registrytest.Build{Version: "2.0.0", Salt: "2"})
	form := w.get(everything(), offered(w.get(everything(), modelPage))["Roll back"])
	wantPage(t, "form", form, http.StatusOK, "prod goes back to 1.0.0")
	w.Promoted(t, registrytest.Build{Version: "3.0.0", Salt: "3"})
	if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: second.Model, Ref: string(second.Digest), To: "prod", Downgrade: true}); err != nil {
		t.Fatal(err)
	}
	fields := filled(form)
	fields.Set("reason", "bad latency")
	if got := w.post(everything(), fields); w.head(t).Version != "1.0.0" {
		t.Errorf("status %d: prod went to %s, want 1.0.0 as the form said", got.Code, w.head(t).Version)
	}
}

// Whoever releases a hold releases the one that they saw. One that was set since stays, and is shown.
func TestHoldThatWasNotSeenStays(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	hold := func(reason string) {
		if err := w.SetHold(t.Context(), "prod", "vision/digits", reason); err != nil {
			t.Fatal(err)
		}
	}
	hold("until the audit")
	form := w.get(everything(), offered(w.get(everything(), modelPage))["Release the hold"])
	wantPage(t, "form", form, http.StatusOK, "until the audit")
	hold("poisoned data")
	fields := filled(form)
	fields.Set("reason", "the audit is over")
	again := w.post(everything(), fields)
	wantPage(t, "sent", again, http.StatusConflict, "held for another reason than you saw", "poisoned data", "the audit is over")
	if now := w.head(t); now.Hold != "poisoned data" {
		t.Errorf("prod is held for %q, want the hold that was set after the page was shown", now.Hold)
	}
	second := filled(again)
	second.Set("reason", "the data is mended")
	if got := w.post(everything(), second); got.Code != http.StatusSeeOther || w.head(t).Hold != "" {
		t.Errorf("a second time: status %d, hold %q, want it released", got.Code, w.head(t).Hold)
	}
}
