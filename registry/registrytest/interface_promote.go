package registrytest

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
)

func testPromote(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	r.Prove(t, release)
	p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	if p.Release != release.Digest || p.Version != "1.0.0" || p.Previous != "" ||
		p.Unchanged || p.Environment != "prod" || p.From != "staging" || !p.Decision.Allowed() {
		t.Errorf("the promotion is %+v", p)
	}
	headIs(t, r, "prod", release.Digest)
	for _, tag := range []string{"", "1.0.0", "current"} {
		got, err := r.Release(t.Context(), "prod", Model, tag)
		if err != nil || got.Digest != release.Digest {
			t.Errorf("%q in prod is %s, error %v", tag, got.Digest, err)
		}
	}
	summarizedEverywhere(t, r, release, p)
	got := events(t, r, history.EventPromote)
	if len(got) != 1 || got[0].Release != release.Digest || got[0].Environment != "prod" ||
		!containsAll(got[0].Evidence, p.VSA) || len(got[0].Evidence) != 13+len(p.VSA) {
		t.Errorf("history has %+v", got)
	}
	chained(t, r)
}

func testPromoteAgain(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, Ref: "1.0.0", From: "staging", To: "prod"})
	if err != nil || !p.Unchanged || p.Release != release.Digest || len(events(t, r, history.EventPromote)) != 1 {
		t.Errorf("promoting again gives %+v, error %v", p, err)
	}
	second := r.Promoted(t, Build{Version: "1.1.0", Salt: "b"})
	headIs(t, r, "prod", second.Digest)
	if got := events(t, r, history.EventPromote); len(got) != 2 || got[1].Previous != release.Digest {
		t.Errorf("history has %+v", got)
	}
	chained(t, r)
	back := api.PromoteRequest{Model: Model, Ref: "1.0.0"}
	if _, err := r.Promote(t.Context(), back); registry.CodeOf(err) != registry.CodePolicy || !strings.Contains(err.Error(), policy.RequireNoDowngrade) {
		t.Errorf("an older version: error %v, want CodePolicy", err)
	}
	headIs(t, r, "prod", second.Digest)
	back.Downgrade = true
	if _, err := r.Promote(t.Context(), back); err != nil {
		t.Errorf("an older version, as it is asked for: %v", err)
	}
	headIs(t, r, "prod", release.Digest)
}

// testReplaces: who names the head that they saw moves it only if it is still there.
func testReplaces(t *testing.T, r Registry) {
	nothing := registry.Digest("")
	first := r.Build(t, Build{})
	r.Prove(t, first)
	ask := func(ref string, seen registry.Digest) error {
		_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model, Ref: ref, From: "staging", To: "prod", Replaces: &seen})
		return err
	}
	if err := ask("1.0.0", first.Digest); registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("to replace what is not there yet: got %v, want CodeConflict", err)
	}
	if err := ask("1.0.0", nothing); err != nil {
		t.Fatalf("to replace nothing where nothing is: %v", err)
	}
	if err := ask("1.0.0", nothing); err != nil {
		t.Errorf("the same request again: got %v, want the release that is there", err)
	}
	second := r.Build(t, Build{Version: "1.1.0", Salt: "b"})
	r.Prove(t, second)
	for _, seen := range []registry.Digest{nothing, second.Digest} {
		if err := ask("1.1.0", seen); registry.CodeOf(err) != registry.CodeConflict || !strings.Contains(err.Error(), "not what you saw") {
			t.Errorf("to replace %q: got %v, want CodeConflict", seen, err)
		}
	}
	headIs(t, r, "prod", first.Digest)
	if err := ask("1.1.0", first.Digest); err != nil {
		t.Fatal(err)
	}
	back := api.RollbackRequest{Environment: "prod", Model: Model, Version: "1.0.0", Reason: "slow", Replaces: &first.Digest}
	if _, err := r.Rollback(t.Context(), back); registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("rollback of what is not there any more: got %v, want CodeConflict", err)
	}
	headIs(t, r, "prod", second.Digest)
	back.Replaces = &second.Digest
	if _, err := r.Rollback(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	headIs(t, r, "prod", first.Digest)
}

// summarizedEverywhere wants a summary on the release, every engine and every image form, and one that
// resolve accepts.
func summarizedEverywhere(t *testing.T, r Registry, release artifact.Release, p api.Promotion) {
	t.Helper()
	claims, ignored, err := r.Claims(t.Context(), "prod", release)
	if err != nil || ignored.IgnoredCount != 0 {
		t.Fatalf("ignored %v, error %v", ignored, err)
	}
	var on []registry.Digest
	for _, c := range claims {
		if c.Statement.PredicateType == evidence.PredicateVSA && slices.Contains(p.VSA, c.Bundle) {
			on = append(on, c.Subject)
		}
	}
	for _, s := range release.Subjects() {
		if !slices.Contains(on, s.Digest) {
			t.Errorf("%s has no summary in prod", s.Name)
		}
	}
	_, summary, ok := policy.FindVSA(claims, release, "oci://local/prod/"+Model)
	if !ok || summary.Promotion.Tag != release.Tag() || summary.Promotion.From != "staging" || !summary.Promotion.Sources.Names(release.Sources) ||
		len(summary.InputAttestations) != 13 || len(summary.Promotion.HistoryHead) == 0 || !summary.Policy.Digest.Names(d("environments.yaml")) {
		t.Errorf("the summary is %+v", summary)
	}
}

func containsAll(in, all []registry.Digest) bool {
	return !slices.ContainsFunc(all, func(x registry.Digest) bool { return !slices.Contains(in, x) })
}

func testPromoteDryRun(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	dry := api.PromoteRequest{Model: Model, DryRun: true}
	p, err := r.Promote(t.Context(), dry)
	refused(t, err, registry.CodePolicy)
	if p.Decision.Allowed() || len(p.Decision.Requirements) == 0 {
		t.Errorf("the decision is %+v", p.Decision)
	}
	r.Prove(t, release)
	p, err = r.Promote(t.Context(), dry)
	if err != nil || !p.Decision.Allowed() || p.Release != release.Digest || len(p.VSA) != 0 {
		t.Errorf("got %+v, error %v", p, err)
	}
	headIs(t, r, "prod", "")
	_, err = r.Release(t.Context(), "prod", Model, string(release.Digest))
	refused(t, err, registry.CodeNotFound)
}

func testPromoteWithoutProof(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	promote := func(says ...string) {
		t.Helper()
		p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
		refused(t, err, registry.CodePolicy, says...)
		if p.Decision.Allowed() || p.Release != release.Digest {
			t.Errorf("the promotion is %+v", p)
		}
		headIs(t, r, "prod", "")
	}
	promote("signature of release", "provenance of linux-amd64-v1/fp32", "parity of linux-amd64-v3/int8")
	r.Sign(t, release)
	promote("parity of linux-amd64-v3/int8: no report")
	for i, e := range release.Engines {
		v := evidence.VerdictPass
		if i == 1 {
			v = evidence.VerdictFail
		}
		r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, Report(release, e, v))
	}
	promote(`verdict is "fail"`)
	e := release.Engines[1]
	late := Report(release, e, evidence.VerdictPass)
	late.FinishedOn = late.FinishedOn.AddDate(0, 0, 1)
	r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, late) // whoever made it could not know of the failure
	promote(`verdict is "fail"`)
	r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, r.Seeing(t, Report(release, e, evidence.VerdictPass)))
	if _, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model}); err != nil {
		t.Errorf("after a pass that saw the failure: %v", err)
	}
	headIs(t, r, "prod", release.Digest)
}

func testPromoteUnknown(t *testing.T, r Registry) {
	r.Build(t, Build{})
	for _, c := range []struct {
		code registry.Code
		q    api.PromoteRequest
	}{
		{registry.CodeNotFound, api.PromoteRequest{Model: "vision/letters"}},
		{registry.CodeNotFound, api.PromoteRequest{Model: Model, Ref: "9.9.9"}},
		{registry.CodeNotFound, api.PromoteRequest{Model: Model, Ref: string(d("nowhere"))}},
		{registry.CodeNotFound, api.PromoteRequest{Model: Model, To: "moon"}},
		{registry.CodeInvalid, api.PromoteRequest{Model: Model, From: "prod", To: "staging"}},
		{registry.CodeInvalid, api.PromoteRequest{Model: Model, To: "staging"}},
	} {
		_, err := r.Promote(t.Context(), c.q)
		refused(t, err, c.code)
	}
	headIs(t, r, "prod", "")
}

func testVersionTaken(t *testing.T, r Registry) {
	first := r.Promoted(t, Build{})
	other := r.Build(t, Build{Salt: "other bytes"})
	r.Prove(t, other)
	_, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	refused(t, err, registry.CodePolicy, "1.0.0", "choose a new version", string(first.Digest))
	headIs(t, r, "prod", first.Digest)
	if got, err := r.Release(t.Context(), "prod", Model, "1.0.0"); err != nil || got.Digest != first.Digest {
		t.Errorf("1.0.0 in prod is %s, error %v", got.Digest, err)
	}
	revised := r.Promoted(t, Build{Salt: "other bytes", Revision: 2})
	if headIs(t, r, "prod", revised.Digest); revised.Tag() != "1.0.0-r2" || strings.Contains(string(revised.Digest), string(first.Digest)) {
		t.Errorf("the revision is %s %s", revised.Tag(), revised.Digest)
	}
}
