package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Checks that the limits require and that did not run are listed by name.
func TestChecksThatDidNotRun(t *testing.T) {
	t.Parallel()
	pass := func(kind evidence.Trial) evidence.Check {
		return evidence.Check{Trial: kind, Verdict: evidence.VerdictPass}
	}
	repeat, process := pass(evidence.TrialRepeat), pass(evidence.TrialProcess)
	unknown := func(kind evidence.Trial, what string) evidence.Check {
		return evidence.Check{Trial: kind, Size: what, Verdict: evidence.VerdictUndecided, Message: "no time"}
	}
	none, all := &validators.ConsistencyLimits{Jitter: validators.JitterNone}, &validators.ConsistencyLimits{Required: true}
	type checks = evidence.Checks
	for name, c := range map[string]struct {
		limits *validators.ConsistencyLimits
		checks checks
		want   string
	}{
		"nothing wanted":              {nil, nil, ""},
		"no jitter, known":            {none, checks{repeat, process, unknown(evidence.TrialBatch, "batch=8")}, ""},
		"no jitter, unknown":          {none, checks{unknown(evidence.TrialRepeat, ""), process}, "the limits want the consistency check repeat, which did not run: no time"},
		"no jitter, not loaded again": {none, checks{repeat, process, unknown(evidence.TrialLoad, "")}, "the limits want the consistency check load, which did not run: no time"},
		"no jitter, nothing checked":  {none, nil, "the limits want the consistency check repeat, which did not run; the limits want the consistency check process, which did not run"},
		"by the limits, unknown":      {&validators.ConsistencyLimits{Jitter: validators.JitterLimits}, nil, ""},
		"so many runs":                {&validators.ConsistencyLimits{Rare: 93}, checks{{Trial: evidence.TrialRepeat, Cases: 32}, {Trial: evidence.TrialProcess, Cases: 32}}, ""},
		"a run too few": {&validators.ConsistencyLimits{Rare: 93}, checks{{Trial: evidence.TrialRepeat, Cases: 31}, {Trial: evidence.TrialProcess, Cases: 32}},
			"the limits ask for repeated runs that miss a difference in 1 of 93 requests at most half of the time, and the runs were enough for 1 of 91: verify where there is more time, or ask for less (limits.consistency.rare)"},
		"runs, and none ran": {&validators.ConsistencyLimits{Rare: 2, Required: true}, checks{process, repeat},
			"the limits ask for repeated runs that miss a difference in 1 of 2 requests at most half of the time, and none ran: verify where there is more time, or ask for less (limits.consistency.rare)"},
		"all, known": {all, checks{repeat, process}, ""},
		"all, one unknown": {all, checks{repeat, process, unknown(evidence.TrialBatch, "batch=8")},
			"the limits want the consistency check batch batch=8, which did not run: no time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			for _, r := range (validators.Limits{V: validators.LimitsVersion, Consistency: c.limits}).JudgeNotRun(c.checks) {
				if r.Code != validators.ReasonNotRun {
					t.Errorf("code %s, want %s", r.Code, validators.ReasonNotRun)
				}
				said = append(said, r.Message)
			}
			if got := strings.Join(said, "; "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestConsistencyLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits validators.ConsistencyLimits
		want   string
	}{
		"no jitter":         {validators.ConsistencyLimits{Jitter: "none"}, ""},
		"jitter by limits":  {validators.ConsistencyLimits{Jitter: "limits"}, ""},
		"all checks":        {validators.ConsistencyLimits{Required: true}, ""},
		"rare differences":  {validators.ConsistencyLimits{Rare: 2}, ""},
		"the rarest":        {validators.ConsistencyLimits{Rare: evidence.MostRare}, ""},
		"all are rare":      {validators.ConsistencyLimits{Rare: 1}, "rare 1: want 2 to 100000"},
		"too rare":          {validators.ConsistencyLimits{Rare: evidence.MostRare + 1}, "rare 100001: want 2"},
		"nothing":           {validators.ConsistencyLimits{}, "asks for nothing"},
		"some other jitter": {validators.ConsistencyLimits{Jitter: "little"}, `jitter "little": want none or limits`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := validators.Limits{V: validators.LimitsVersion, MinCases: 1, Confidence: 0.95, Consistency: &c.limits, Precisions: map[string]validators.PrecisionLimits{
				"fp32": {Outputs: map[string]validators.OutputLimits{"y": {Cosine: &validators.AtLeast{Min: 0.9}}}}}}
			err := limits.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
