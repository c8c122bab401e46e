package server_test

import (
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/rest"
)

// TestPromotionChecks holds the check of a registry in the same process against its contract.
func TestPromotionChecks(t *testing.T) {
	t.Parallel()
	registrytest.TestPromotionChecker(t, func(t *testing.T) (registrytest.Registry, api.PromotionChecker) {
		w := setup(t)
		return w.Registry, api.PromotionChecks{Registry: w.config.Registry, Preview: w.config.Preview}
	})
}

// The answer follows each event that changes the decision, although it is remembered: evidence, quarantines,
// restrictions, holds, and a version that was promoted with other bytes.
func TestPromotionCheckFollowsEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ask := func(when, query string, reasons ...string) api.PromotionCheck {
		t.Helper()
		var got api.PromotionCheck
		for range 2 { // decided, and remembered
			answer := w.do(http.MethodGet, rest.ModelsPath+registrytest.Model+"/promotion-check?environment=prod&"+query, "")
			want(t, answer, http.StatusOK, &got)
			var all []string
			for _, o := range got.Reasons {
				all = append(all, o.Requirement+": "+o.Message)
				if !strings.HasPrefix(o.URL, "https://models.example/models/vision/digits/-/") {
					t.Errorf("%s: got the page %q of a reason", when, o.URL)
				}
			}
			text := strings.Join(all, "|")
			for _, r := range reasons {
				if !strings.Contains(text, r) {
					t.Errorf("%s: got the reasons %q, want %q among them", when, text, r)
				}
			}
			yes := strings.HasPrefix(answer.Body.String(), `{"allowed":true,`)
			if got.Allowed != (len(reasons) == 0) || yes != got.Allowed || got.Reasons == nil {
				t.Errorf("%s: got %s, want allowed to be %v", when, answer.Body, len(reasons) == 0)
			}
		}
		return got
	}
	first := w.Build(t, registrytest.Build{})
	const version = "version=1.0.0"
	ask("unproven", version, "signature: ", "parity: ")
	w.Prove(t, first)
	if got := ask("proven", version); got.Digest != first.Digest || got.Unchanged {
		t.Errorf("got %+v, want the digest %s", got, first.Digest)
	}
	w.Restricting(t, "staging", registrytest.SourceOf(first), nil)
	ask("a restriction of the environment before", version)
	w.Restricting(t, "prod", registrytest.SourceOf(first), nil)
	ask("restricted", version, "no-restriction: ")
	w.Restricting(t, "prod", nil, registrytest.SourceOf(first))
	ask("no longer restricted", version)

	second := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	if got := ask("the head of staging moved", version); got.Digest != first.Digest {
		t.Errorf("got the digest %s after the head moved, want %s", got.Digest, first.Digest)
	}
	ask("the new head", "digest="+string(second.Digest), "signature: ")
	promote := func(d registry.Digest) {
		t.Helper()
		if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: string(d)}); err != nil {
			t.Fatal(err)
		}
	}
	promote(first.Digest)
	if got := ask("promoted", version); !got.Unchanged {
		t.Errorf("got %+v of a release that prod has, want it unchanged", got)
	}
	w.Prove(t, second)
	ask("proven as well", "version=1.1.0")
	if err := w.SetHold(t.Context(), "prod", registrytest.Model, "the answers are looked at"); err != nil {
		t.Fatal(err)
	}
	ask("held", "version=1.1.0", ": vision/digits in prod is held at 1.0.0: the answers are looked at")
	if err := w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "they are right"}); err != nil {
		t.Fatal(err)
	}
	ask("no longer held", "version=1.1.0")
	w.AttachTo(t, "staging", second, second.Engines[0].Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "it crashes"})
	ask("in quarantine", "version=1.1.0", "no-quarantine: ")

	again := w.Build(t, registrytest.Build{Salt: "c"}) // the tag in staging moves to it
	w.Prove(t, again)
	ask("a version that prod has with other bytes", "digest="+string(again.Digest), "choose a new version")
}

// A question that cannot be decided is an error, which curl --fail and http steps see by its status.
func TestPromotionCheckRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	w.Prove(t, second)
	unknown := "sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		model, query string
		status       int
		code         registry.Code
	}{
		"no release":                    {"", "environment=prod", 400, registry.CodeInvalid},
		"no environment":                {"", "version=1.0.0", 400, registry.CodeInvalid},
		"two environments":              {"", "environment=prod&environment=staging&version=1.0.0", 400, registry.CodeInvalid},
		"two versions":                  {"", "environment=prod&version=1.0.0&version=1.1.0", 400, registry.CodeInvalid},
		"two digests":                   {"", "environment=prod&digest=" + string(first.Digest) + "&digest=" + unknown, 400, registry.CodeInvalid},
		"unknown parameter":             {"", "environment=prod&version=1.0.0&force=true", 400, registry.CodeInvalid},
		"environment that builds write": {"", "environment=staging&version=1.0.0", 400, registry.CodeInvalid},
		"unknown environment":           {"", "environment=production&version=1.0.0", 404, registry.CodeNotFound},
		"unknown version":               {"", "environment=prod&version=9.9.9", 404, registry.CodeNotFound},
		"unknown digest":                {"", "environment=prod&digest=" + unknown, 404, registry.CodeNotFound},
		"digest of an engine":           {"", "environment=prod&digest=" + string(first.Engines[0].Digest), 400, registry.CodeInvalid},
		"no digest":                     {"", "environment=prod&digest=sha256:00", 400, registry.CodeInvalid},
		"digest as a version":           {"", "environment=prod&version=" + string(first.Digest), 400, registry.CodeInvalid},
		"version of another digest":     {"", "environment=prod&version=1.1.0&digest=" + string(first.Digest), 409, registry.CodeConflict},
		"unknown model":                 {"vision/letters", "environment=prod&version=1.0.0", 404, registry.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := c.model
			if model == "" {
				model = registrytest.Model
			}
			got := w.do(http.MethodGet, rest.ModelsPath+model+"/promotion-check?"+c.query, "")
			wantProblem(t, name, got, c.status, c.code)
			if strings.Contains(got.Body.String(), `"allowed":true`) {
				t.Errorf("%s: got %s, want no yes", name, got.Body)
			}
		})
	}
}
