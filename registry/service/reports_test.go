package service_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// A report that is too old refuses a promotion, also if it ages while the release is copied. A rollback
// does not ask how old reports are.
func TestOldReports(t *testing.T) {
	t.Parallel()
	now, m := &settable{}, &meanwhile{}
	now.set(clockAt(8))
	w := setup(t, func(c *backend.Backend) {
		m.Content, c.Content = c.Content, m
		c.Now = func() time.Time { return now.Clock() }
		c.Environments.List[1].Reports = policy.ReportRule{MaxAge: time.Hour}
	})
	verify := func(r artifact.Release) {
		t.Helper()
		for _, e := range r.Engines {
			report := w.Seeing(t, registrytest.Report(r, e, evidence.VerdictPass))
			report.FinishedOn = now.Clock()
			report.StartedOn = report.FinishedOn
			w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, report)
		}
	}
	built := func(b registrytest.Build) artifact.Release {
		t.Helper()
		r := w.Build(t, b)
		w.Sign(t, r)
		verify(r)
		return r
	}
	promote := func() error {
		_, err := w.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
		return err
	}
	first := built(registrytest.Build{})
	must(t, promote())
	second := built(registrytest.Build{Version: "1.1.0", Salt: "b"})
	must(t, promote())
	third := built(registrytest.Build{Version: "1.2.0", Salt: "c"})
	refused := func(when string) {
		t.Helper()
		if err := promote(); registry.ExitCode(err) != 4 ||
			!strings.Contains(err.Error(), "passing reports of 0 verifiers from the last 1h0m0s") || w.head(t).Release != second.Digest {
			t.Errorf("%s: error %v, head %s; want a refusal and %s", when, err, w.head(t).Release, second.Digest)
		}
	}
	m.then = func() { now.set(clockAt(10)) }
	refused("aged while it was copied")
	refused("too old")
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{Environment: "prod",
		Model: registrytest.Model, Reason: "it is slow"}); err != nil || w.head(t).Release != first.Digest {
		t.Errorf("rollback: error %v, head %+v, want %s", err, w.head(t), first.Digest)
	}
	must(t, w.ReleaseHold(t.Context(), api.HoldRelease{Environment: "prod", Model: registrytest.Model, Reason: "verified again"}))
	w.AttachTo(t, "staging", third, third.Engines[0].Digest, evidence.PredicateParity,
		w.Seeing(t, registrytest.Report(third, third.Engines[0], evidence.VerdictPass)))
	if err := promote(); registry.ExitCode(err) != 4 {
		t.Errorf("a report of years ago, attached now: error %v, want a refusal", err)
	}
	verify(third)
	if err := promote(); err != nil || w.head(t).Release != third.Digest {
		t.Errorf("verified again: error %v, head %s", err, w.head(t).Release)
	}
}
