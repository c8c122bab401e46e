package validators_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// A limit on latency passes by the upper bound, fails by the lower one, and else is not decided.
func TestLatencyByItsBounds(t *testing.T) {
	t.Parallel()
	limits := validators.LatencyLimits{P50: &validators.TimeAtMost{MaxNs: 100 * time.Nanosecond}, P99: &validators.TimeAtMost{MaxNs: 200 * time.Nanosecond}}
	slower := validators.LatencyLimits{Regression: &validators.AtMost{Max: 0.1}}
	at := func(p50Low, p50High, p99Low, p99High int64) registry.Latency {
		return registry.Latency{Samples: 400, P50Ns: (p50Low + p50High) / 2, P99Ns: (p99Low + p99High) / 2,
			Bounds: &registry.LatencyBounds{Confidence: 0.95, P50LowNs: p50Low, P50HighNs: p50High, P99LowNs: p99Low, P99HighNs: p99High}}
	}
	ratio := func(low, high, noise registry.Figure) *registry.LatencyRatio {
		return &registry.LatencyRatio{Confidence: 0.95, Ratio: (low + high) / 2, Low: low, High: high, SameLow: 1 - noise, SameHigh: 1 + noise/2}
	}
	ran := at(90, 100, 150, 200)
	for name, c := range map[string]struct {
		limits validators.LatencyLimits
		engine registry.Latency
		ratio  *registry.LatencyRatio
		fault  string
		want   registry.Verdict
		code   string
		says   string
	}{
		"no limit":                   {validators.LatencyLimits{}, registry.Latency{}, nil, "", registry.VerdictRecorded, "", ""},
		"at both limits":             {limits, ran, nil, "", registry.VerdictPass, "", ""},
		"p50 perhaps above":          {limits, at(90, 101, 150, 200), nil, "", registry.VerdictUndecided, validators.ReasonNotEnough, "p50 is 0.000 ms in 400 runs, with 95 % confidence at most"},
		"p50 at its limit, at least": {limits, at(100, 120, 150, 200), nil, "", registry.VerdictUndecided, validators.ReasonNotEnough, ""},
		"p50 above":                  {limits, at(101, 120, 150, 200), nil, "", registry.VerdictFail, validators.ReasonLatency, ""},
		"p99 above":                  {limits, at(90, 100, 201, 300), nil, "", registry.VerdictFail, validators.ReasonLatency, ""},
		"too few for p99":            {limits, at(90, 100, 150, 0), nil, "", registry.VerdictUndecided, validators.ReasonNotEnough, "too few for a bound"},
		"not measured":               {limits, registry.Latency{}, nil, "", registry.VerdictUndecided, validators.ReasonNotRun, ""},
		"without bounds":             {limits, registry.Latency{Samples: 400, P50Ns: 1, P99Ns: 1}, nil, "", registry.VerdictUndecided, validators.ReasonNotRun, ""},
		"nothing to compare with":    {slower, ran, nil, "", registry.VerdictPass, "", ""},
		"as slow as allowed":         {slower, ran, ratio(0.9, 1.1, 0.01), "", registry.VerdictPass, "", ""},
		"perhaps slower":             {slower, ran, ratio(1.05, 1.11, 0.01), "", registry.VerdictUndecided, validators.ReasonNotEnough, "at most 11.0 %"},
		"slower":                     {slower, ran, ratio(1.11, 1.2, 0.5), "", registry.VerdictFail, validators.ReasonRegression, "at least 11.0 %"},
		"on a noisy machine":         {slower, ran, ratio(0.8, 1.3, 0.11), "", registry.VerdictUndecided, validators.ReasonUnfit, "differs from itself by up to 11.0 %"},
		"current not known":          {slower, ran, nil, "it does not run", registry.VerdictUndecided, validators.ReasonNotRun, "it does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := validators.Limits{V: 2, Latency: c.limits}.JudgeLatencyBounds(c.engine, c.ratio, c.fault)
			if verdict != c.want || (c.code == "") != (len(reasons) == 0) {
				t.Fatalf("verdict %s for %+v, want %s", verdict, reasons, c.want)
			}
			if c.code != "" && (reasons[0].Code != c.code || !strings.Contains(reasons[0].Message, c.says)) {
				t.Errorf("reasons %+v, want %s with %q", reasons, c.code, c.says)
			}
		})
	}
}
