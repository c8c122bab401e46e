package validators_test

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// A figure at its limit passes, and the next one above it fails.
func TestLatencyAtItsLimit(t *testing.T) {
	t.Parallel()
	at := func(p50, p99 int64) registry.Latency { return registry.Latency{Samples: 32, P50Ns: p50, P99Ns: p99} }
	limits := validators.LatencyLimits{
		P50: &validators.TimeAtMost{MaxNs: 100 * time.Nanosecond}, P99: &validators.TimeAtMost{MaxNs: 200 * time.Nanosecond},
		Regression: &validators.AtMost{Max: 0.5},
	}
	current := at(50, 60)
	for name, c := range map[string]struct {
		limits  validators.LatencyLimits
		engine  registry.Latency
		current *registry.Latency
		want    registry.Verdict
		reason  string
		figure  string
	}{
		"no limit":                {validators.LatencyLimits{}, at(1000, 1000), &current, registry.VerdictRecorded, "", ""},
		"at both limits":          {limits, at(100, 200), nil, registry.VerdictPass, "", ""},
		"p50 above":               {limits, at(101, 200), nil, registry.VerdictFail, validators.ReasonLatency, "p50"},
		"p99 above":               {limits, at(100, 201), nil, registry.VerdictFail, validators.ReasonLatency, "p99"},
		"not measured":            {limits, registry.Latency{}, nil, registry.VerdictUndecided, validators.ReasonNotRun, ""},
		"as slow as allowed":      {limits, at(75, 200), &current, registry.VerdictPass, "", ""},
		"slower than the current": {limits, at(76, 200), &current, registry.VerdictFail, validators.ReasonRegression, "p50"},
		"faster than the current": {limits, at(10, 20), &current, registry.VerdictPass, "", ""},
		"current not measured":    {limits, at(76, 200), new(registry.Latency), registry.VerdictPass, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := validators.Limits{Latency: c.limits}.JudgeLatency(c.engine, c.current)
			if verdict != c.want || c.reason == "" && len(reasons) > 0 {
				t.Fatalf("verdict %s for %+v, want %s", verdict, reasons, c.want)
			}
			if c.reason != "" && (len(reasons) != 1 || reasons[0].Code != c.reason || reasons[0].Figure != c.figure) {
				t.Errorf("reasons %+v, want %s of %q alone", reasons, c.reason, c.figure)
			}
		})
	}
}
