package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// emergency is approversOf two in a freeze that two approvers may skip, with the approvals.
func emergency(c *backend.Backend) {
	approversOf(2)(c)
	c.Environments.List[1].Freeze = []policy.Freeze{{Name: "fair", From: clockAt(0).AddDate(-1, 0, 0), Until: clockAt(0).AddDate(1, 0, 0)}}
	c.Environments.List[1].BreakGlass = []string{"no-freeze", "approvals"}
}

// breakGlass attaches a break-glass approval for prod, in staging, over the present head of prod.
func (w *world) breakGlass(t *testing.T, r artifact.Release, key string, edit func(*evidence.BreakGlass)) error {
	t.Helper()
	now := w.config.Now()
	b := evidence.BreakGlass{ResourceURI: "oci://local/prod/" + r.Model, Replaces: evidence.NewDigestSet(w.head(t).Release),
		Skips: []string{"no-freeze", "approvals"}, Comment: "prod is down", ApprovedOn: now, ExpiresOn: now.Add(evidence.MaxBreakGlass)}
	if edit != nil {
		edit(&b)
	}
	_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: r.Digest,
		Bundle: w.Bundle(t, key, evidence.PredicateBreakGlass, b, r.Digest)})
	return err
}

// breaks tries a break-glass promotion of a version.
func (w *world) breaks(t *testing.T, version string) (api.Promotion, error) {
	t.Helper()
	return w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: version, BreakGlass: true})
}

// Two approvers agree, and the promotion says everywhere what it skipped, until another one. What they
// said is used up then: after a rollback it counts no more.
func TestBreakGlassPromotion(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*backend.Backend){"local": nil, "prod on another registry": {external("prod")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, append(edits, emergency)...)
			r := w.proven(t, registrytest.Build{})
			if _, err := w.breaks(t, "1.0.0"); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "missing: 2 approvers") {
				t.Fatalf("without approvals: %v", err)
			}
			err := w.breakGlass(t, r, "first", nil)
			must(t, err)
			if _, err := w.breaks(t, "1.0.0"); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "1 of 2 approved to skip approvals, no-freeze") {
				t.Fatalf("with one: %v", err)
			}
			err = w.breakGlass(t, r, "second", nil)
			must(t, err)
			if _, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model}); registry.ExitCode(err) != 4 {
				t.Fatalf("without being asked to: %v", err)
			}
			p, err := w.breaks(t, "1.0.0")
			const says = "break-glass: skips approvals, no-freeze; approved by first, second: prod is down; prod is down"
			if err != nil || p.Decision.Skipped == nil || p.Decision.Skipped.String() != says {
				t.Fatalf("decision %+v, error %v, want %q", p.Decision.Skipped, err, says)
			}
			events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
			must(t, err)
			if len(events) != 1 || events[0].Reason != says || !slices.Equal(events[0].Skipped, []string{"approvals", "no-freeze"}) {
				t.Errorf("history %+v, want %q and both requirements", events, says)
			}
			claims, _, err := w.Claims(t.Context(), "prod", r)
			must(t, err)
			if _, v, ok := policy.FindVSA(claims, r, "oci://local/prod/"+r.Model); !ok ||
				v.Promotion.Skipped.String() != says || !slices.Equal(v.VerifiedLevels, []string{evidence.VSALevelBreakGlass}) {
				t.Errorf("summary %+v, want %q and no level of parity", v, says)
			}
			if heads, err := w.Heads(t.Context(), "prod", ""); err != nil || len(heads) != 1 || heads[0].BreakGlass != says {
				t.Errorf("heads %+v, error %v, want %q", heads, err, says)
			}
			// What was said is used up with the head that it named.
			next := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			if _, err := w.breaks(t, "1.1.0"); registry.ExitCode(err) != 4 {
				t.Errorf("another release: %v", err)
			}
			for _, key := range []string{"first", "second"} {
				err := w.breakGlass(t, next, key, nil)
				must(t, err)
			}
			_, err = w.breaks(t, "1.1.0")
			must(t, err)
			_, err = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "worse"})
			must(t, err)
			must(t, w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "tried"}))
			if _, err := w.breaks(t, "1.1.0"); registry.ExitCode(err) != 4 ||
				!strings.Contains(err.Error(), "the head was moved after it was given") || w.head(t).Release != r.Digest {
				t.Errorf("again, over the head that is back: %v", err)
			}
			// A rollback goes back to the head that was replaced, and to no other that came so.
			third := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
			for _, key := range []string{"first", "second"} {
				must(t, w.breakGlass(t, third, key, nil))
			}
			_, err = w.breaks(t, "1.2.0")
			must(t, err)
			_, err = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: "1.1.0", Reason: "later"})
			if registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "1.1.0 came to prod by break-glass on ") || w.head(t).Release != third.Digest {
				t.Errorf("back to one of long ago: %v", err)
			}
			_, err = w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod", Model: registrytest.Model, Version: "1.0.0", Reason: "worse"})
			must(t, err)
		})
	}
}

// A promotion that skips nothing is not listed as one by break-glass, whatever its reason says.
func TestPromotionReasonIsNoBreakGlass(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.proven(t, registrytest.Build{})
	promote := func(reason string) error {
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Reason: reason})
		return err
	}
	must(t, promote("break-glass: skips no-freeze; approved by first, second: prod is down"))
	heads, err := w.Heads(t.Context(), "prod", "")
	if err != nil || len(heads) != 1 || heads[0].Release != r.Digest || heads[0].BreakGlass != "" {
		t.Errorf("heads %+v, error %v, want one that skipped nothing", heads, err)
	}
}

// In an emergency, long texts do not stop a promotion after everything was copied: they are shortened.
func TestBreakGlassLongReasons(t *testing.T) {
	t.Parallel()
	w := setup(t, emergency)
	r := w.proven(t, registrytest.Build{})
	for _, key := range []string{"first", "second"} {
		must(t, w.breakGlass(t, r, key, func(b *evidence.BreakGlass) { b.Comment = strings.Repeat("ä", registry.MaxText/2) }))
	}
	reason := "the fallback of the shop fails" + strings.Repeat(" too", 200)
	_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.0.0", BreakGlass: true, Reason: reason})
	must(t, err)
	events, err := w.History(t.Context(), history.HistoryQuery{Kind: history.EventPromote})
	must(t, err)
	const begins = "break-glass: skips approvals, no-freeze; approved by first, second: ää"
	if got := events[0].Reason; !strings.HasPrefix(got, begins) || !strings.Contains(got, "…; the fallback of the shop fails too") ||
		registry.ValidateText("reason", got) != nil {
		t.Errorf("history has %q, want what was skipped, and the beginning of the reason", got)
	}
	if heads, err := w.Heads(t.Context(), "prod", ""); err != nil || heads[0].BreakGlass != events[0].Reason {
		t.Errorf("heads %+v, error %v, want what was skipped", heads, err)
	}
}

// What must never be skipped is not, and what could never count is refused when it is attached.
func TestBreakGlassRefusals(t *testing.T) {
	t.Parallel()
	t.Run("quarantine", func(t *testing.T) {
		t.Parallel()
		w := setup(t, emergency)
		r := w.proven(t, registrytest.Build{})
		for _, key := range []string{"first", "second"} {
			err := w.breakGlass(t, r, key, nil)
			must(t, err)
		}
		w.AttachTo(t, "staging", r, r.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "wrong labels"})
		if _, err := w.breaks(t, "1.0.0"); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "wrong labels") || w.head(t).Release != "" {
			t.Errorf("%v, want the quarantine", err)
		}
	})
	for name, c := range map[string]struct {
		key  string
		edit func(*evidence.BreakGlass)
		want string
	}{
		"a builder":  {"dora", nil, "signed the build of this release, so it cannot approve it"},
		"a verifier": {"verifier", nil, "is not trusted as approver for oci://local/prod/vision/digits"},
		"of staging": {"carl", nil, "is not trusted as approver for oci://local/prod/vision/digits"},
		"for next week": {"first", func(b *evidence.BreakGlass) {
			b.ApprovedOn, b.ExpiresOn = b.ApprovedOn.AddDate(0, 0, 7), b.ExpiresOn.AddDate(0, 0, 7)
		}, "set the clock"},
		"of last week": {"first", func(b *evidence.BreakGlass) {
			b.ApprovedOn, b.ExpiresOn = b.ApprovedOn.AddDate(0, 0, -7), b.ExpiresOn.AddDate(0, 0, -7)
		}, "it expired"},
		"for a year":     {"approver", func(b *evidence.BreakGlass) { b.ExpiresOn = b.ExpiresOn.AddDate(1, 0, 0) }, "at most 24h"},
		"the signatures": {"approver", func(b *evidence.BreakGlass) { b.Skips = []string{"signature"} }, "cannot be skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, emergency)
			r := w.proven(t, registrytest.Build{})
			if c.key == "dora" {
				_, err := w.Attach(t.Context(), api.Attachment{Environment: "staging", Model: r.Model, Release: r.Digest, Subject: r.Engines[0].Digest,
					Bundle: w.Bundle(t, "dora", evidence.PredicateSign, struct{}{}, r.Engines[0].Digest)})
				must(t, err)
			}
			if err := w.breakGlass(t, r, c.key, c.edit); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Approvals that expire while the promotion copies do not count when the head moves.
func TestBreakGlassExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	now, m := &settable{}, &meanwhile{}
	now.set(clockAt(8))
	w := setup(t, emergency, func(c *backend.Backend) {
		m.Content, c.Content = c.Content, m
		c.Now = func() time.Time { return now.Clock() }
	})
	r := w.proven(t, registrytest.Build{})
	for _, key := range []string{"first", "second"} {
		err := w.breakGlass(t, r, key, nil)
		must(t, err)
	}
	m.then = func() { now.set(clockAt(8).AddDate(0, 0, 1).Add(evidence.MaxBreakGlass / 24)) }
	if _, err := w.breaks(t, "1.0.0"); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "it expired on") || w.head(t).Release != "" {
		t.Errorf("got %v, want that they expired", err)
	}
}
