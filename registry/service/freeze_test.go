package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// settable is a clock that goes on by a second whenever it is looked at, and that can be set.
type settable struct{ storage.Clock }

func (s *settable) set(at time.Time) {
	s.Clock = func() time.Time { at = at.Add(time.Second); return at }
}

func clockAt(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }

// meanwhile is content in which something happens once, when a release is copied.
type meanwhile struct {
	storage.Content
	then func() // nil: nothing
}

func (m *meanwhile) Copy(ctx context.Context, from, to string, r artifact.Release, evidence []registry.Digest) error {
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return m.Content.Copy(ctx, from, to, r, evidence)
}

// frozen is a world whose prod takes nothing from 10 to 12.
func frozen(t *testing.T) (*world, *settable, *meanwhile) {
	t.Helper()
	now, m := &settable{}, &meanwhile{}
	now.set(clockAt(8))
	w := setup(t, func(c *backend.Backend) {
		m.Content, c.Content = c.Content, m
		c.Now = func() time.Time { return now.Clock() }
		c.Environments.List[1].Freeze = []policy.Freeze{{Name: "fair", From: clockAt(10), Until: clockAt(12)}}
	})
	return w, now, m
}

// A freeze refuses promotions from its first instant on, also those that began before. It lets a
// rollback through.
func TestFreezeOfPromotions(t *testing.T) {
	t.Parallel()
	const ends = "fair (2026-01-02T10:00:00Z until 2026-01-02T12:00:00Z) of prod lasts until 2026-01-02T12:00:00Z"
	for name, c := range map[string]struct {
		begin     time.Time
		meanwhile time.Time // that the clock says before the head moves; zero: it goes on
		want      string    // of the refusal; empty: it is promoted
	}{
		"before":                    {clockAt(9), time.Time{}, ""},
		"in it":                     {clockAt(10), time.Time{}, ends},
		"after":                     {clockAt(12), time.Time{}, ""},
		"it begins meanwhile":       {clockAt(9), clockAt(10), ends},
		"it passes meanwhile":       {clockAt(9), clockAt(13), ""},
		"turned back into it":       {clockAt(12), clockAt(11), "but the newest event of the history is of"},
		"turned back to before it":  {clockAt(13), clockAt(9), "but the newest event of the history is of"},
		"turned back before it all": {clockAt(7), time.Time{}, "but the newest event of the history is of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, now, m := frozen(t)
			before := w.Promoted(t, registrytest.Build{})
			r := w.proven(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
			now.set(c.begin)
			if !c.meanwhile.IsZero() {
				// An event at the time at which the promotion began, as a busy service has.
				must(t, w.SetHold(t.Context(), "prod", registrytest.Model, "tried"))
				must(t, w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "tried"}))
				m.then = func() { now.set(c.meanwhile) }
			}
			p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
			want := before.Digest
			if c.want == "" {
				want = r.Digest
			}
			if (err == nil) != (c.want == "") ||
				err != nil && (registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), c.want)) || w.head(t).Release != want {
				t.Errorf("unmet %+v, error %v, head %s, want %q and head %s", p.Decision.Unmet(), err, w.head(t).Release, c.want, want)
			}
		})
	}
}

// In a freeze a rollback goes back, and a promotion of what is there already changes nothing.
func TestRollbackInAFreeze(t *testing.T) {
	t.Parallel()
	w, now, _ := frozen(t)
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	now.set(clockAt(11))
	if p, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: "1.1.0"}); err != nil ||
		!p.Unchanged || w.head(t).Release != second.Digest {
		t.Errorf("again: %+v, error %v", p, err)
	}
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod",
		Model: registrytest.Model, Reason: "it is slow"}); err != nil || w.head(t).Release != first.Digest {
		t.Errorf("rollback: error %v, head %+v, want %s", err, w.head(t), first.Digest)
	}
}
