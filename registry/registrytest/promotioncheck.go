package registrytest

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// TestPromotionChecker is the contract of [api.PromotionChecker]. open returns one for a registry with the
// environments of [Chain].
func TestPromotionChecker(t *testing.T, open func(t *testing.T) (Registry, api.PromotionChecker)) {
	t.Run("decides", func(t *testing.T) { t.Parallel(); decides(t, open) })
	t.Run("refuses", func(t *testing.T) { t.Parallel(); refusesQueries(t, open) })
}

func decides(t *testing.T, open func(t *testing.T) (Registry, api.PromotionChecker)) {
	r, checker := open(t)
	release := r.Build(t, Build{})
	ask := func(when string, q api.PromotionQuery, allowed, unchanged bool) {
		t.Helper()
		q.Model, q.Environment = Model, "prod"
		got, err := checker.PromotionCheck(t.Context(), q)
		must(t, err)
		if got.Digest != release.Digest || got.Version != "1.0.0" || got.Model != Model || got.Environment != "prod" {
			t.Errorf("%s: got an answer about %+v, want one about %s", when, got, release.Digest)
		}
		if got.Allowed != allowed || got.Unchanged != unchanged || (len(got.Reasons) == 0) != allowed {
			t.Errorf("%s: got %+v, want allowed %v and unchanged %v", when, got, allowed, unchanged)
		}
		for _, why := range got.Reasons {
			if why.Code == "" || why.Message == "" || strings.Contains(why.Message, "\n") {
				t.Errorf("%s: got the reason %+v, want a code and one line", when, why)
			}
		}
	}
	byVersion, byDigest := api.PromotionQuery{Version: "1.0.0"}, api.PromotionQuery{Digest: release.Digest}
	ask("without evidence", byVersion, false, false)
	ask("without evidence", byDigest, false, false)
	r.Prove(t, release)
	ask("proven", byVersion, true, false)
	ask("proven", api.PromotionQuery{Version: "1.0.0", Digest: release.Digest}, true, false)
	if heads, err := r.Heads(t.Context(), "prod", Model); err != nil || len(heads) != 0 {
		t.Errorf("got the heads %+v and %v after questions, want none", heads, err)
	}
	_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	ask("promoted", byDigest, true, true)
	r.AttachTo(t, "staging", release, release.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "it crashes"})
	ask("in quarantine", byVersion, false, true)
}

// refusesQueries: what cannot be decided is an error, and its answer allows nothing.
func refusesQueries(t *testing.T, open func(t *testing.T) (Registry, api.PromotionChecker)) {
	r, checker := open(t)
	first := r.Promoted(t, Build{})
	second := r.Build(t, Build{Version: "1.1.0", Salt: "b"})
	for name, c := range map[string]struct {
		query api.PromotionQuery
		code  registry.Code
	}{
		"no release":        {api.PromotionQuery{Model: Model, Environment: "prod"}, registry.CodeInvalid},
		"no environment":    {api.PromotionQuery{Model: Model, Version: "1.0.0"}, registry.CodeInvalid},
		"no tag":            {api.PromotionQuery{Model: Model, Environment: "prod", Version: "a b"}, registry.CodeInvalid},
		"no digest":         {api.PromotionQuery{Model: Model, Environment: "prod", Digest: "sha256:0"}, registry.CodeInvalid},
		"where builds go":   {api.PromotionQuery{Model: Model, Environment: "staging", Version: "1.0.0"}, registry.CodeInvalid},
		"another chain":     {api.PromotionQuery{Model: Model, Environment: "elsewhere", Version: "1.0.0"}, registry.CodeNotFound},
		"an unknown tag":    {api.PromotionQuery{Model: Model, Environment: "prod", Version: "9.9.9"}, registry.CodeNotFound},
		"an unknown digest": {api.PromotionQuery{Model: Model, Environment: "prod", Digest: d("nothing")}, registry.CodeNotFound},
		"an unknown model":  {api.PromotionQuery{Model: "vision/letters", Environment: "prod", Version: "1.0.0"}, registry.CodeNotFound},
		"two releases":      {api.PromotionQuery{Model: Model, Environment: "prod", Version: "1.0.0", Digest: second.Digest}, registry.CodeConflict},
	} {
		got, err := checker.PromotionCheck(t.Context(), c.query)
		if !registry.HasCode(err, c.code) || got.Allowed {
			t.Errorf("%s: got %+v and %v, want the code %s", name, got, err, c.code)
		}
	}
	got, err := checker.PromotionCheck(t.Context(), api.PromotionQuery{Model: Model, Environment: "prod", Digest: first.Digest})
	if err != nil || got.Digest != first.Digest {
		t.Errorf("got %+v and %v after the head of staging moved, want an answer about %s", got, err, first.Digest)
	}
}
