package verify

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Latencies are compared with those of the engine in use only where limits ask for it.
func TestCompareLatencyIsNotAskedFor(t *testing.T) {
	t.Parallel()
	c := run.Candidate{ID: "engine-0"}
	v := Session{Scratch: t.TempDir(), Fetched: Fetched{current: map[string]replaced{c.Engine.Label(): {}},
		Expected: Expected{Limits: validators.Limits{V: validators.LimitsVersion},
			Cases: run.Material{Dir: t.TempDir(), Set: &artifact.CaseSet{Count: 2, Shards: []artifact.Shard{{File: "lost.safetensors", Count: 2}}}}}}}
	if found, err := compareLatency(t.Context(), v, c, RunOutputs{}); err != nil || found.ratio != nil || found.fault != "" {
		t.Errorf("compared %+v, error %v; want nothing", found, err)
	}
}

// A comparison of times says its interval, or why there is none.
func TestNoteOfARatio(t *testing.T) {
	t.Parallel()
	if got := (compared{fault: "too noisy"}).note(); got != "too noisy" {
		t.Errorf("got %q", got)
	}
	if got, want := (compared{ratio: &evidence.LatencyRatio{Ratio: 1.1, Low: 0.95, High: 1.25}}).note(), "+10.0 %, between -5.0 and +25.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
