package service_test

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// A refusal names a reason once: requirements that are unmet only because a pass is missing are not named beside parity.
func TestRefusalSaysEachThingOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Build(t, registrytest.Build{})
	w.Sign(t, release)
	s := w.after(t, require(policy.RequireRecordedCases), func(c *backend.Backend) {
		c.Environments.List[1].Accuracy = &policy.AccuracyRequirement{Metric: "top1", Min: new(evidence.Figure)}
	})
	_, err := s.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model})
	if err == nil {
		t.Fatal("promoted without a report, want a refusal")
	}
	for _, e := range release.Engines {
		line := "parity of " + e.Label() +
			": no report of a trusted verifier: run mlpromote verify on a machine that meets the target\n"
		if got := strings.Count(err.Error()+"\n", line); got != 1 {
			t.Errorf("%d times %q in %q, want once", got, line, err)
		}
	}
	for _, name := range []string{"recorded-cases", "accuracy", "reports"} {
		if strings.Contains(err.Error(), name) {
			t.Errorf("%s is named, and only a pass is missing: %v", name, err)
		}
	}
}

// Where no limit may be looser, a release with reports over fewer cases replaces none with more. The number is
// that of the reports of the head, also after another release had fewer.
func TestPromoteOverFewerCases(t *testing.T) {
	t.Parallel()
	w := setup(t)
	promote := func(version string, cases int) error {
		t.Helper()
		r := w.Build(t, registrytest.Build{Version: version, Salt: version})
		w.Sign(t, r)
		for _, e := range r.Engines {
			report := registrytest.Report(r, e, evidence.VerdictPass)
			report.Cases.Count, report.Cases.Ran = cases, cases
			w.AttachTo(t, "staging", r, e.Digest, evidence.PredicateParity, report)
		}
		s := w.after(t, require(policy.RequireNoLooser), func(c *backend.Backend) {
			c.Compare = func(context.Context, policy.Located, policy.Located) (policy.Comparison, error) {
				return policy.Comparison{}, nil
			}
		})
		_, err := s.Promote(t.Context(), api.PromoteRequest{Model: registrytest.Model, Ref: version})
		return err
	}
	for _, c := range []struct {
		version string
		cases   int
		refusal string // empty for none
	}{{"1.0.0", 300, ""}, {"1.1.0", 299, "no-looser of release: 1 limit looser than in 1.0.0, which prod has now: cases: 299, were 300"}, {"1.2.0",
		300, ""}, {"1.3.0", 301, ""}, {"1.4.0", 300, "cases: 300, were 301"}} {
		err := promote(c.version, c.cases)
		if c.refusal == "" && err != nil || c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s with %d cases: error %v, want %q", c.version, c.cases, err, c.refusal)
		}
	}
}
