package verify

import (
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// An engine is slow from twice the median of the fastest one in fp32 on, if that is no noise.
func TestSlowEngines(t *testing.T) {
	t.Parallel()
	reference := evidence.Latency{P50Ns: 10, P90Ns: 12, Samples: 100}
	engine := func(label string, p50, p90 int64) VerifiedEngine {
		e := VerifiedEngine{Label: label}
		e.Performance.Latency = evidence.Latency{P50Ns: p50, P90Ns: p90, Samples: 100}
		e.Performance.ReferenceLatency = &reference
		return e
	}
	broken := engine("a/int8", 1000, 1000)
	broken.Performance.Latency.Samples = 0
	untimed, alone := broken, engine("a/int8", 1000, 1000)
	untimed.Performance.ReferenceLatency, alone.Performance.ReferenceLatency = nil, nil
	for name, c := range map[string]struct {
		precisions []string
		engines    []VerifiedEngine
		want       []SlowEngine
	}{
		"at the factor":    {[]string{"fp32", "int8"}, []VerifiedEngine{engine("a/fp32", 50, 60), engine("a/int8", 100, 110)}, []SlowEngine{{"a/int8", "a/fp32", 2, 100, 50}}},
		"below it":         {[]string{"fp32", "int8"}, []VerifiedEngine{engine("a/fp32", 50, 60), engine("a/int8", 99, 110)}, nil},
		"within the noise": {[]string{"fp32", "int8"}, []VerifiedEngine{engine("a/fp32", 50, 100), engine("a/int8", 100, 110)}, nil},
		"beyond the noise": {[]string{"fp32", "int8"}, []VerifiedEngine{engine("a/fp32", 50, 99), engine("a/int8", 100, 110)}, []SlowEngine{{"a/int8", "a/fp32", 2, 100, 50}}},
		"the fastest fp32": {[]string{"fp32", "fp32", "int8"},
			[]VerifiedEngine{engine("b/fp32", 90, 95), engine("a/fp32", 20, 25), engine("a/int8", 30, 35)},
			[]SlowEngine{{"b/fp32", "a/fp32", 4.5, 90, 20}}},
		"beside the model":   {[]string{"int8"}, []VerifiedEngine{engine("a/int8", 30, 35)}, []SlowEngine{{"a/int8", "reference", 3, 30, 10}}},
		"not run":            {[]string{"int8"}, []VerifiedEngine{broken}, nil},
		"nothing to compare": {[]string{"int8"}, []VerifiedEngine{untimed}, nil},
		"one without a base": {[]string{"int8"}, []VerifiedEngine{alone}, nil},
		"a base of no time":  {[]string{"fp32", "int8"}, []VerifiedEngine{engine("a/fp32", 0, 0), engine("a/int8", 100, 110)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slowEngines(c.precisions, c.engines); !reflect.DeepEqual(got, c.want) {
				t.Errorf("slow are %+v, want %+v", got, c.want)
			}
		})
	}
}

// slowEngines finds the engines, of these precisions, that are far slower than fp32.
func slowEngines(precisions []string, engines []VerifiedEngine) []SlowEngine {
	var v Session
	for _, p := range precisions {
		v.candidates = append(v.candidates, run.Candidate{Engine: artifact.Engine{Precision: p}})
	}
	return slow(v, engines)
}
