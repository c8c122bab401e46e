package validators_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// A limit on latency passes by the upper bound, fails by the lower one, and else is not decided.
func TestLatencyByItsBounds(t *testing.T) {
	t.Parallel()
	limits := validators.LatencyLimits{P50: &validators.TimeAtMost{MaxNs: 100 * time.Nanosecond},
		P99: &validators.TimeAtMost{MaxNs: 200 * time.Nanosecond}}
	slower := validators.LatencyLimits{Regression: &validators.AtMost{Max: 0.1}}
	at := func(p50Low, p50High, p99Low, p99High int64) evidence.Latency {
		return evidence.Latency{Samples: 400, P50Ns: (p50Low + p50High) / 2, P99Ns: (p99Low + p99High) / 2,
			Bounds: &evidence.LatencyBounds{Confidence: 0.95, P50LowNs: p50Low, P50HighNs: p50High, P99LowNs: p99Low, P99HighNs: p99High}}
	}
	ratio := func(low, high, noise evidence.Figure) *evidence.LatencyRatio {
		return &evidence.LatencyRatio{Confidence: 0.95, Ratio: (low + high) / 2, Low: low, High: high, SameLow: 1 - noise, SameHigh: 1 + noise/2}
	}
	ran := at(90, 100, 150, 200)
	for name, c := range map[string]struct {
		limits validators.LatencyLimits
		engine evidence.Latency
		ratio  *evidence.LatencyRatio
		fault  string
		want   evidence.Verdict
		code   string
		says   string
	}{
		"no limit":                   {validators.LatencyLimits{}, evidence.Latency{}, nil, "", evidence.VerdictRecorded, "", ""},
		"at both limits":             {limits, ran, nil, "", evidence.VerdictPass, "", ""},
		"p50 perhaps above":          {limits, at(90, 101, 150, 200), nil, "", evidence.VerdictUndecided, validators.ReasonNotEnough, "p50 is 0.000 ms in 400 runs, with 95 % confidence at most"},
		"p50 at its limit, at least": {limits, at(100, 120, 150, 200), nil, "", evidence.VerdictUndecided, validators.ReasonNotEnough, ""},
		"p50 above":                  {limits, at(101, 120, 150, 200), nil, "", evidence.VerdictFail, validators.ReasonLatency, ""},
		"p99 above":                  {limits, at(90, 100, 201, 300), nil, "", evidence.VerdictFail, validators.ReasonLatency, ""},
		"too few for p99":            {limits, at(90, 100, 150, 0), nil, "", evidence.VerdictUndecided, validators.ReasonNotEnough, "too few for a bound"},
		"not measured":               {limits, evidence.Latency{}, nil, "", evidence.VerdictUndecided, validators.ReasonNotRun, ""},
		"without bounds":             {limits, evidence.Latency{Samples: 400, P50Ns: 1, P99Ns: 1}, nil, "", evidence.VerdictUndecided, validators.ReasonNotRun, ""},
		"nothing to compare with":    {slower, ran, nil, "", evidence.VerdictPass, "", ""},
		"as slow as allowed":         {slower, ran, ratio(0.9, 1.1, 0.01), "", evidence.VerdictPass, "", ""},
		"perhaps slower":             {slower, ran, ratio(1.05, 1.11, 0.01), "", evidence.VerdictUndecided, validators.ReasonNotEnough, "at most 11.0 %"},
		"slower":                     {slower, ran, ratio(1.11, 1.2, 0.5), "", evidence.VerdictFail, validators.ReasonRegression, "at least 11.0 %"},
		"on a noisy machine":         {slower, ran, ratio(0.8, 1.3, 0.11), "", evidence.VerdictUndecided, validators.ReasonUnfit, "differs from itself by up to 11.0 %"},
		"current not known":          {slower, ran, nil, "it does not run", evidence.VerdictUndecided, validators.ReasonNotRun, "it does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := folded(validators.Limits{V: validators.LimitsVersion, Latency: c.limits}.JudgeLatency(c.engine, c.ratio, c.fault, evidence.Fitness{}))
			if verdict != c.want || (c.code == "") != (len(reasons) == 0) {
				t.Fatalf("verdict %s for %+v, want %s", verdict, reasons, c.want)
			}
			if c.code != "" && (reasons[0].Code != c.code || !strings.Contains(reasons[0].Message, c.says)) {
				t.Errorf("reasons %+v, want %s with %q", reasons, c.code, c.says)
			}
		})
	}
}

// A machine that was not fit fails no engine and decides no comparison, from just above the
// thresholds; an emulator decides nothing. A limit that is kept all the same is kept.
func TestLatencyOfUnfitMachines(t *testing.T) {
	t.Parallel()
	p50 := validators.LatencyLimits{P50: &validators.TimeAtMost{MaxNs: 100}}
	slower := validators.LatencyLimits{Regression: &validators.AtMost{Max: 0.1}}
	engine := func(high int64) evidence.Latency {
		return evidence.Latency{Samples: 400, P50Ns: high, Bounds: &evidence.LatencyBounds{Confidence: 0.95, P50LowNs: high, P50HighNs: high}}
	}
	beside := func(ratio evidence.Figure) *evidence.LatencyRatio {
		return &evidence.LatencyRatio{Confidence: 0.95, Ratio: ratio, Low: ratio - 0.01, High: ratio + 0.01, SameLow: 1, SameHigh: 1}
	}
	steal := func(share evidence.Figure) evidence.Fitness { return evidence.Fitness{Steal: &share} }
	for name, c := range map[string]struct {
		limits  validators.LatencyLimits
		engine  evidence.Latency
		ratio   *evidence.LatencyRatio
		fitness evidence.Fitness
		want    evidence.Verdict
		says    string
	}{
		"steal as much as is fit":    {p50, engine(101), nil, steal(0.05), evidence.VerdictFail, ""},
		"more steal":                 {p50, engine(101), nil, steal(0.0501), evidence.VerdictUndecided, "had 5.0 % of the time that its processors wanted, at most 5 % is fit"},
		"more steal and kept":        {p50, engine(100), nil, steal(0.5), evidence.VerdictPass, ""},
		"a comparison that is kept":  {slower, engine(1), beside(1), steal(0.5), evidence.VerdictPass, ""},
		"a comparison that is not":   {slower, engine(1), beside(1.2), steal(0.5), evidence.VerdictUndecided, "had 50.0 %"},
		"nothing to compare with":    {slower, engine(1), nil, steal(0.5), evidence.VerdictPass, ""},
		"steal that is not a number": {p50, engine(101), nil, steal(evidence.Figure(math.NaN())), evidence.VerdictUndecided, "unfit"},
		"frequency at what is fit":   {p50, engine(101), nil, evidence.Fitness{MHzBefore: 2000, MHzAfter: 2400}, evidence.VerdictFail, ""},
		"frequency that went up":     {p50, engine(101), nil, evidence.Fitness{MHzBefore: 2000, MHzAfter: 2401}, evidence.VerdictUndecided, "from 2000 to 2401 MHz"},
		"frequency that went down":   {p50, engine(101), nil, evidence.Fitness{MHzBefore: 2401, MHzAfter: 2000}, evidence.VerdictUndecided, "from 2401 to 2000 MHz"},
		"emulated": {p50, engine(100), nil, evidence.Fitness{Emulated: "the processor is emulated"},
			evidence.VerdictUndecided, "no limit on latency is decided here: the processor is emulated"},
		"emulated and nothing limited": {validators.LatencyLimits{}, engine(100), nil, evidence.Fitness{Emulated: "x"}, evidence.VerdictRecorded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := folded(validators.Limits{V: validators.LimitsVersion, Latency: c.limits}.JudgeLatency(c.engine, c.ratio, "", c.fitness))
			said := ""
			for _, r := range reasons {
				said += r.Message + "\n"
				if c.want == evidence.VerdictUndecided && r.Code != validators.ReasonUnfit && r.Code != validators.ReasonEmulated {
					t.Errorf("code %s for %q, want that of the machine", r.Code, r.Message)
				}
			}
			if verdict != c.want || !strings.Contains(said, c.says) {
				t.Errorf("verdict %s, saying\n%swant %s, saying %q", verdict, said, c.want, c.says)
			}
		})
	}
}

// Of runs that are too few to bound the 99th percentile, the message says how many are enough, by the
// formula of MLPerf's early stopping.
func TestTailSaysHowManyRunsAreEnough(t *testing.T) {
	t.Parallel()
	limits := validators.Limits{V: validators.LimitsVersion, Confidence: 0.95, Latency: validators.LatencyLimits{P99: &validators.TimeAtMost{MaxNs: 200}}}
	for over, want := range map[int]string{
		0: "0 runs above the limit it takes 299 to show",
		1: "1 run above the limit it takes 473 to show",
	} {
		engine := evidence.Latency{Samples: 298, P99Ns: 200, Bounds: &evidence.LatencyBounds{Confidence: 0.95, P99LowNs: 100, Over: &over}}
		verdict, reasons := folded(limits.JudgeLatency(engine, nil, "", evidence.Fitness{}))
		if verdict != evidence.VerdictUndecided || len(reasons) != 1 || !strings.Contains(reasons[0].Message, want) {
			t.Errorf("%d over: %s for %+v, want undecided, saying %q", over, verdict, reasons, want)
		}
	}
}

// folded is the verdict on findings, with its reasons.
func folded(found validators.Findings) (evidence.Verdict, []evidence.Reason) {
	var head evidence.ReportHead
	found.Fold(&head)
	return head.Verdict, head.Reasons
}
