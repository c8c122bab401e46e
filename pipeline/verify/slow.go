package verify

import (
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// farSlower is from which factor on an engine is pointed out: below, another machine of the kind
// can tell otherwise.
const farSlower = 2

// slow finds the engines that are far slower than fp32 here. Half of the runs of a slow engine took
// longer than 9 of 10 runs in fp32, so that noise is not taken for slowness.
func slow(v Session, engines []VerifiedEngine) []SlowEngine {
	var base evidence.Latency
	than := ""
	for i, e := range engines {
		l := e.Performance.Latency
		if v.candidates[i].Engine.Precision == validators.PrecisionFP32 && l.Samples > 0 && (than == "" || l.P50Ns < base.P50Ns) {
			base, than = l, e.Label
		}
	}
	for _, e := range engines {
		if l := e.Performance.ReferenceLatency; than == "" && l != nil && l.Samples > 0 {
			base, than = *l, run.ReferenceID
		}
	}
	var slow []SlowEngine
	for _, e := range engines {
		l := e.Performance.Latency
		if than != "" && base.P50Ns > 0 && l.Samples > 0 && l.P50Ns >= farSlower*base.P50Ns && l.P50Ns > base.P90Ns {
			slow = append(slow, SlowEngine{Label: e.Label, Than: than,
				Times: float64(l.P50Ns) / float64(base.P50Ns), P50Ns: l.P50Ns, ThanP50Ns: base.P50Ns})
		}
	}
	return slow
}
