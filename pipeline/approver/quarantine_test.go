package approver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// where writes places as people name them.
func where(places []approver.Place) (all []string) {
	for _, p := range places {
		text := fmt.Sprintf("%s/%s:%s %s", p.Environment, p.Model, p.Version, p.Subject.Name)
		if p.Head {
			text += " head"
		}
		all = append(all, text)
	}
	return all
}

// A release is found in every environment that has it, at the head or before it, and an engine once in each environment and model.
func TestFind(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "second"})
	w.Build(t, registrytest.Build{Model: "a/other", Salt: "other"})
	for name, c := range map[string]struct {
		environment, model string
		subject            registry.Digest
		want               []string
	}{
		"a release before the head":      {"", "", first.Digest, []string{"staging/vision/digits:1.0.0 release", "prod/vision/digits:1.0.0 release head"}},
		"the head of staging":            {"", "", second.Digest, []string{"staging/vision/digits:1.1.0 release head"}},
		"in one environment":             {"prod", "", first.Digest, []string{"prod/vision/digits:1.0.0 release head"}},
		"of one model":                   {"staging", "vision/digits", first.Digest, []string{"staging/vision/digits:1.0.0 release"}},
		"an engine":                      {"prod", "", first.Engines[1].Digest, []string{"prod/vision/digits:1.0.0 " + first.Engines[1].Label() + " head"}},
		"of another model":               {"", "a/other", first.Digest, nil},
		"in an environment without it":   {"prod", "", second.Digest, nil},
		"what is no release":             {"", "", first.Limits, nil},
		"in a model that is not in prod": {"prod", "a/other", first.Digest, nil},
	} {
		got, err := w.quarantiner().Find(t.Context(), c.environment, c.model, c.subject)
		if !slices.Equal(where(got), c.want) {
			t.Errorf("%s: found %q, want %q", name, where(got), c.want)
		}
		if c.want == nil {
			wantError(t, name, err, registry.CodeNotFound, "neither a release nor an engine")
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Build(t, registrytest.Build{Version: "1.2.0", Salt: "third"})
	got, err := w.quarantiner().Find(t.Context(), "", "", second.Digest)
	if want := []string{"staging/vision/digits:1.1.0 release"}; err != nil || !slices.Equal(where(got), want) {
		t.Errorf("between other releases: found %q, error %v, want %q", where(got), err, want)
	}
	w.failing("release", string(first.Digest), registry.CodeUnavailable)
	_, err = w.quarantiner().Find(t.Context(), "staging", "", second.Digest)
	wantError(t, "where a release that is not the head fails", err, registry.CodeUnavailable, "release fails")
	for _, call := range []string{"models", "heads", "releases", "release"} {
		w.failing(call, "", registry.CodeUnavailable)
		_, err := w.quarantiner().Find(t.Context(), "", "", first.Digest)
		wantError(t, "where "+call+" fails", err, registry.CodeUnavailable, call+" fails")
	}
}

// A release that cannot be read is passed over and named; one that a registry does not answer for ends the search.
func TestFindGoesOnBesideDamage(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	good := w.Build(t, registrytest.Build{})
	bad := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "second"})
	for _, code := range []registry.Code{registry.CodeTrust, registry.CodeDigest, registry.CodeUnsafe, registry.CodeInvalid,
		registry.CodeNotFound, registry.CodeInternal} {
		w.failing("release", string(bad.Digest), code)
		var unread []approver.Unread
		q := w.quarantiner()
		q.Unread = func(u approver.Unread) { unread = append(unread, u) }
		got, err := q.Find(t.Context(), "", "", good.Engines[0].Digest)
		if err != nil || len(got) != 1 || got[0].Release != good.Digest {
			t.Errorf("%s: found %q, error %v, want the release that can be read", code, where(got), err)
		}
		if len(unread) != 1 || unread[0].Release != bad.Digest || unread[0].Model != registrytest.Model || unread[0].Reason == "" {
			t.Errorf("%s: unread %+v, want the damaged release, which is the head", code, unread)
		}
		unread = nil
		own, err := q.Find(t.Context(), "", "", bad.Digest)
		if want := []string{"staging/vision/digits:1.1.0 release head"}; err != nil || !slices.Equal(where(own), want) || len(unread) != 0 {
			t.Errorf("%s, by its own digest: found %q, unread %+v, error %v, want %q", code, where(own), unread, err, want)
		}
		q.Unread = nil
		if _, err := q.Find(t.Context(), "", "", good.Engines[0].Digest); err != nil {
			t.Errorf("%s, without a callback: %v", code, err)
		}
	}
	w.failing("release", string(bad.Digest), registry.CodeForbidden)
	_, err := w.quarantiner().Find(t.Context(), "", "", good.Digest)
	wantError(t, "who may not read", err, registry.CodeForbidden, "release fails")
}

// One signed statement is attached at each place. A lift lifts what stands, once, and then finds nothing.
func TestQuarantineAndLift(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.Promoted(t, registrytest.Build{})
	q, subject := w.quarantiner(), release.Engines[0].Digest
	places := must[[]approver.Place](t)(q.Find(t.Context(), "", "", subject))
	_, err := q.Lift(t.Context(), places, "fixed")
	wantError(t, "a lift before the quarantine", err, registry.CodeNotFound, "no quarantine stands")
	_, err = q.Set(t.Context(), nil, "wrong answers")
	wantError(t, "no place", err, registry.CodeInvalid, "no place to attach it")
	_, err = q.Set(t.Context(), places, "")
	wantError(t, "no reason", err, registry.CodeInvalid, "reason")
	attached := must[[]approver.Attached](t)(q.Set(t.Context(), places, "wrong answers"))
	if len(attached) != 2 || attached[0].Environment != "staging" || attached[1].Environment != "prod" || attached[0].Evidence != attached[1].Evidence {
		t.Errorf("attached %+v, want the same bundle in staging and prod", attached)
	}
	w.standing(t, "prod", release, subject, 1)
	again := q
	again.Now = func() time.Time { return time.Now().Add(-time.Minute) } // another statement
	must[[]approver.Attached](t)(again.Set(t.Context(), places, "wrong answers of class 7"))
	w.standing(t, "prod", release, subject, 2)
	lifted := must[[]approver.Attached](t)(q.Lift(t.Context(), places, "fixed"))
	if len(lifted) != 2 {
		t.Errorf("lifted at %+v, want both places", lifted)
	}
	w.standing(t, "prod", release, subject, 0)
	_, err = q.Lift(t.Context(), places, "fixed")
	wantError(t, "a lift after the lift", err, registry.CodeNotFound, "no quarantine stands")
}

// standing wants a number of quarantines of a subject in an environment.
func (w *world) standing(t *testing.T, environment string, r artifact.Release, subject registry.Digest, want int) {
	t.Helper()
	claims, _, err := w.Claims(t.Context(), environment, r)
	if got := len(evidence.Quarantines(r, claims, subject)); err != nil || got != want {
		t.Errorf("%s has %d quarantines, error %v, want %d", environment, got, err, want)
	}
}

// A statement that lifts names each quarantine once, and is attached only where one stands.
func TestLiftNamesEachQuarantineOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.Promoted(t, registrytest.Build{})
	q := w.quarantiner()
	places := must[[]approver.Place](t)(q.Find(t.Context(), "", "", release.Digest))
	set := must[[]approver.Attached](t)(q.Set(t.Context(), places, "wrong answers"))
	other := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "second"})
	elsewhere := must[[]approver.Place](t)(q.Find(t.Context(), "", "", other.Digest))
	elsewhere[0].Subject = places[0].Subject // a release that does not have the subject has no quarantine of it
	lifted := must[[]approver.Attached](t)(q.Lift(t.Context(), slices.Concat(places, elsewhere), "fixed"))
	if len(lifted) != 2 {
		t.Errorf("lifted at %+v, want the places that have the quarantine", lifted)
	}
	claims, _, err := w.Claims(t.Context(), "staging", release)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if q, ok := c.Quarantine(); ok && len(q.Lifts) > 0 && !slices.Equal(q.Lifts, []registry.Digest{set[0].Evidence}) {
			t.Errorf("the statement lifts %v, want %s alone", q.Lifts, set[0].Evidence)
		}
	}
}

// A quarantine that stands for the same reason is not signed again, and one that was lifted is.
func TestQuarantineForTheSameReason(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.Promoted(t, registrytest.Build{})
	q := w.quarantiner()
	places := must[[]approver.Place](t)(q.Find(t.Context(), "", "", release.Digest))
	staging := slices.DeleteFunc(slices.Clone(places), func(p approver.Place) bool { return p.Environment != "staging" })
	attached := func(reason string, at []approver.Place) int {
		return len(must[[]approver.Attached](t)(q.Set(t.Context(), at, reason)))
	}
	standing := func() int { return len(must[[]approver.Quarantined](t)(q.Standing(t.Context(), ""))) }
	if n := standing(); n != 0 {
		t.Errorf("%d quarantines stand before any", n)
	}
	for _, step := range []struct {
		reason         string
		at             []approver.Place
		want, standing int // the service attaches it in every environment
	}{{"wrong answers", staging, 1, 2}, {"wrong answers", staging, 0, 2}, {"wrong answers", places, 0, 2}, {"another", places, 2, 4}} {
		if n := attached(step.reason, step.at); n != step.want || standing() != step.standing {
			t.Errorf("%s at %d places: %d attached and %d stand, want %d and %d", step.reason, len(step.at), n, standing(), step.want, step.standing)
		}
	}
	for _, s := range must[[]approver.Quarantined](t)(q.Standing(t.Context(), "prod")) {
		if s.Environment != "prod" || s.Label != "release" || s.Release != release.Digest || s.Since.IsZero() {
			t.Errorf("of prod there is %+v", s)
		}
	}
	must[[]approver.Attached](t)(q.Lift(t.Context(), places, "fixed"))
	if n := attached("wrong answers", places); n != 2 {
		t.Errorf("after a lift: %d attached, want 2", n)
	}
}

// What was attached before an error is given with it. Errors keep their codes.
func TestQuarantineFails(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	release := w.Promoted(t, registrytest.Build{})
	q := w.quarantiner()
	places := must[[]approver.Place](t)(q.Find(t.Context(), "", "", release.Digest))
	w.failing("attach", "prod", registry.CodeConflict)
	attached, err := q.Set(t.Context(), places, "wrong answers")
	wantError(t, "attach fails in prod", err, registry.CodeConflict, "quarantine in prod of vision/digits")
	if len(attached) != 1 || attached[0].Environment != "staging" {
		t.Errorf("attached %+v, want the place in staging", attached)
	}
	for _, call := range []string{"release", "claims"} {
		w.failing(call, "", registry.CodeUnavailable)
		_, err = q.Lift(t.Context(), places, "fixed")
		wantError(t, "a lift where "+call+" fails", err, registry.CodeUnavailable, call+" fails")
	}
	w.failing("", "", "")
	q.Sign = registrytest.NewKeys(nil).Sign
	_, err = q.Set(t.Context(), places, "other answers")
	wantError(t, "without a key", err, registry.CodeUnavailable, "there is no key approver")
}
