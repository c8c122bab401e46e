package verify

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// A measurement gets more runs where limits are on a tail, and no fewer than the least.
func TestTimingOfAVerification(t *testing.T) {
	t.Parallel()
	tail := validators.LatencyLimits{P99: &validators.TimeAtMost{}}
	median := validators.LatencyLimits{P50: &validators.TimeAtMost{}}
	limits := func(l validators.LatencyLimits) validators.Limits {
		return validators.Limits{V: validators.LimitsVersion, Confidence: 0.95, Latency: l}
	}
	runs := limits(tail).TailRuns(tailOver)
	slow := 2 * limitedTime / time.Duration(runs) // so that these runs do not fit the time
	for name, c := range map[string]struct {
		limits validators.Limits
		time   time.Duration
		median time.Duration
		want   timing
	}{
		"nothing is limited":          {limits(validators.LatencyLimits{}), 0, 0, timing{recordedTime, recordedSamples, TimingWarmup}},
		"a median is":                 {limits(median), 0, 0, timing{limitedTime, MaxSamples, TimingWarmup}},
		"a tail is":                   {limits(tail), 0, slow, timing{time.Duration(runs) * slow, runs, warmupFor(slow)}},
		"time is given":               {limits(median), time.Second, time.Millisecond, timing{time.Second, 1000, TimingWarmup}},
		"slow runs fill the time":     {limits(median), 0, limitedTime / 100, timing{limitedTime, 100, leastWarmup}},
		"slow runs have few before":   {limits(validators.LatencyLimits{}), 0, 10 * time.Millisecond, timing{recordedTime, 100, 10}},
		"the slowest have the fewest": {limits(median), 0, time.Hour, timing{limitedTime, minSamples, leastWarmup}},
	} {
		v := Session{Env: &run.Env{LatencyTime: c.time}}
		v.Limits = c.limits
		if got := timingFor(v, c.median); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// Times are not those of a target where the processor is emulated, or where the processor ran what was meant for a device.
func TestFitnessFor(t *testing.T) {
	t.Parallel()
	providers := func(names ...string) (all []artifact.Provider) {
		for _, n := range names {
			all = append(all, artifact.Provider{Name: n})
		}
		return all
	}
	shares := func(names ...string) (all []evidence.ProviderShare) {
		for _, n := range names {
			all = append(all, evidence.ProviderShare{Name: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		providers []artifact.Provider
		ran       []evidence.ProviderShare
		notes     []string
		want      string // part of it
	}{
		"no providers":                   {nil, shares(cpuProvider), nil, ""},
		"of the processor":               {providers(cpuProvider), shares(cpuProvider), nil, ""},
		"of a device, which ran it":      {providers("CUDA", cpuProvider), shares("CUDA", cpuProvider), nil, ""},
		"of a device, which ran nothing": {providers("CUDA", cpuProvider), shares(cpuProvider), nil, "the engine is for CUDA"},
		"of a device, nothing is known":  {providers("CUDA"), nil, nil, ""},
		"emulated":                       {nil, nil, []string{artifact.NoteEmulated}, "emulated"},
		"another note":                   {nil, nil, []string{"other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := measured{}.fitnessFor(run.Candidate{Engine: artifact.Engine{Providers: c.providers}}, artifact.Node{Notes: c.notes}, c.ran)
			if (got.Emulated == "") != (c.want == "") || !strings.Contains(got.Emulated, c.want) {
				t.Errorf("got %q, want %q", got.Emulated, c.want)
			}
		})
	}
}

// Runs for the tail get their time, unless the budget is fixed or it would be more than there is at most.
func TestTimingOfATail(t *testing.T) {
	t.Parallel()
	start := timing{budget: time.Second, samples: 10, warmup: 5}
	longest := int(tailTime / time.Millisecond)
	for name, c := range map[string]struct {
		runs   int
		median time.Duration
		fixed  bool
		want   timing
	}{
		"it fits":                {2000, time.Millisecond, false, timing{2 * time.Second, 2000, 5}},
		"fewer than there are":   {5, time.Millisecond, false, timing{time.Second, 10, 5}},
		"more than fits":         {longest + 1, time.Millisecond, false, timing{tailTime, longest + 1, 5}},
		"exactly what fits":      {longest, time.Millisecond, false, timing{tailTime, longest, 5}},
		"a time of nothing":      {2000, 0, false, timing{tailTime, 2000, 5}},
		"a budget that is fixed": {2000, time.Millisecond, true, timing{time.Second, 2000, 5}},
		"fixed, without a time":  {2000, 0, true, timing{time.Second, 2000, 5}},
	} {
		if got := start.tail(c.runs, c.median, c.fixed); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
