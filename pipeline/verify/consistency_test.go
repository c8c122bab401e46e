package verify

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Jitter of one output fails although another one, of which nothing was compared, is undecided.
func TestJitterBesideAnOutputThatIsUndecided(t *testing.T) {
	t.Parallel()
	limit := validators.OutputLimits{SNRdB: &validators.AtLeast{Min: 40}}
	c := consistencyChecks{v: Session{}}
	c.v.Limits = validators.Limits{V: validators.LimitsVersion, MinCases: 1, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{
		"fp32": {Outputs: map[string]validators.OutputLimits{"a": limit, "b": limit}}}}
	one := func(elements int64, snr float64) tensor.Result {
		return tensor.Result{Cases: 3, Elements: elements, SNR: snr, SpreadSNR: snr}
	}
	whole := map[string]tensor.Result{"a": one(9, 90), "b": one(9, 90)}
	judge := c.judge(run.Candidate{Engine: artifact.Engine{Precision: "fp32"}}, whole)
	for snr, want := range map[float64]evidence.Verdict{45: evidence.VerdictFail, 95: evidence.VerdictUndecided} {
		verdict, reasons := judge(evidence.TrialProcess, map[string]tensor.Result{"a": {}, "b": one(9, snr)}, 3)
		if verdict != want || (verdict == evidence.VerdictFail) != (reasons[0].Output == "b") {
			t.Errorf("%g dB: %s, %v; want %s", snr, verdict, reasons, want)
		}
	}
}

// An engine is loaded again as often as fits the time, at least twice, and no more often than is of use.
func TestLoadsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load, cases time.Duration
		want        int
	}{
		{0, 0, mostLoads}, {time.Millisecond, 0, mostLoads}, {loadsTime / mostLoads, 0, mostLoads}, {loadsTime / (mostLoads - 1), 0, mostLoads - 1},
		{time.Second, 0, 5}, {0, loadsTime / 4, 4}, {loadsTime / 3, 0, 3}, {loadsTime, 0, 2}, {time.Hour, time.Hour, 2},
	} {
		if got := loadsOf(c.load, c.cases, mostLoads); got != c.want {
			t.Errorf("%v to load and %v for the cases: %d loads, want %d", c.load, c.cases, got, c.want)
		}
	}
}
