package service_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
)

// A report that is too old refuses a promotion, also if it ages while the release is copied. A rollback
// does not ask how old reports are.
func TestOldReports(t *testing.T) {
	t.Parallel()
	now, m := &settable{}, &meanwhile{}
	now.set(clockAt(8))
	w := setup(t, func(c *service.Config) {
		m.Content, c.Content = c.Content, m
		c.Now = func() time.Time { return now.Clock() }
		c.Environments.List[1].Reports = registry.ReportRule{MaxAge: time.Hour}
	})
	first := w.Promoted(t, registrytest.Build{})
	second := w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	third := w.proven(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	promote := func() error {
		_, err := w.Promote(t.Context(), registry.PromoteRequest{Model: registrytest.Model})
		return err
	}
	refused := func(when string) {
		t.Helper()
		if err := promote(); registry.ExitCode(err) != 4 || !strings.Contains(err.Error(), "passing reports of 0 verifiers from the last 1h0m0s") || w.head(t).Release != second.Digest {
			t.Errorf("%s: error %v, head %s; want a refusal and %s", when, err, w.head(t).Release, second.Digest)
		}
	}
	m.then = func() { now.set(clockAt(10)) }
	refused("aged while it was copied")
	refused("too old")
	if _, err := w.Rollback(t.Context(), registry.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "it is slow"}); err != nil || w.head(t).Release != first.Digest {
		t.Errorf("rollback: error %v, head %+v, want %s", err, w.head(t), first.Digest)
	}
	must(t, w.ReleaseHold(t.Context(), "prod", registrytest.Model, "verified again"))
	for _, e := range third.Engines {
		w.AttachTo(t, "staging", third, e.Digest, registry.PredicateParity, w.Seeing(t, registrytest.Report(third, e, registry.VerdictPass)))
	}
	if err := promote(); err != nil || w.head(t).Release != third.Digest {
		t.Errorf("verified again: error %v, head %s", err, w.head(t).Release)
	}
}
