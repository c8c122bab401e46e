package validators_test

import (
	"math"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Two runs of the same cases may differ by half of what the engine is off from the reference, and batches,
// other processes and other loads by 1.41 times that, or by a tenth of what the limits allow.
func TestJudgeAgainAtTheLimit(t *testing.T) {
	t.Parallel()
	const repeat, process, load, batch = evidence.TrialRepeat, evidence.TrialProcess, evidence.TrialLoad, evidence.TrialBatch
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		kind   evidence.Trial
		jitter string
		own    float64 // SNR in dB; the limit is 12
		found  float64
		fails  bool
	}{
		"half of the own error":       {repeat, "", 20, 26.02, false},
		"more than half":              {repeat, "", 20, 26.01, true},
		"a tenth of the limit":        {repeat, "", 40, 32, false},
		"more than a tenth":           {repeat, "", 40, 31.99, true},
		"no own error, a tenth":       {repeat, "", inf, 32, false},
		"no own error, more":          {repeat, "", inf, 31.99, true},
		"nothing differs":             {repeat, "", 20, inf, false},
		"no number":                   {repeat, "", 20, math.NaN(), true},
		"process, 1.41 times":         {process, "", 20, 17, false},
		"process, more":               {process, "", 20, 16.99, true},
		"load, 1.41 times":            {load, "", 20, 17, false},
		"load, more":                  {load, "", 20, 16.99, true},
		"load within limits":          {load, validators.JitterLimits, 20, 0, false},
		"batch, 1.41 times":           {batch, "", 20, 17, false},
		"batch, more":                 {batch, "", 20, 16.99, true},
		"repeat within limits":        {repeat, validators.JitterLimits, 20, 0, false},
		"process within limits":       {process, validators.JitterLimits, 20, 0, false},
		"batch is no jitter":          {batch, validators.JitterLimits, 20, 0, true},
		"none is no way around":       {repeat, validators.JitterNone, 20, 26.01, true},
		"dimensions are other inputs": {evidence.TrialDimension, "", 20, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{
				"y": {SNRdB: &validators.AtLeast{Min: 12}}, "class": {Equal: &validators.AtLeast{Min: 0.9}}, "empty": {SNRdB: &validators.AtLeast{Min: 12}}}}}}
			if c.jitter != "" {
				limits.Consistency = &validators.ConsistencyLimits{Jitter: c.jitter}
			}
			of := func(snr float64) map[string]tensor.Result {
				return map[string]tensor.Result{"y": {Elements: 1, SpreadSNR: snr}, "class": {}, "empty": {SpreadSNR: math.NaN()}}
			}
			got := limits.JudgeAgain(c.kind, "int8", of(c.found), of(c.own))
			if (len(got) > 0) != c.fails || len(got) > 1 {
				t.Fatalf("reasons %+v, want one: %t", got, c.fails)
			}
			if c.fails && (got[0].Output != "y" || !strings.Contains(got[0].Message, "the engine's own error")) {
				t.Errorf("reason %+v, want one of output y that names the engine's own error", got[0])
			}
		})
	}
}

// Answers that differ between two runs are held to those that are not the reference's: in one process
// none may differ if the engine misses none.
func TestJudgeAgainOfAnswers(t *testing.T) {
	t.Parallel()
	const repeat, process, batch = evidence.TrialRepeat, evidence.TrialProcess, evidence.TrialBatch
	for name, c := range map[string]struct {
		kind           evidence.Trial
		jitter         string
		missed, differ float64 // of 400 cases and of 32
		fails          bool
	}{
		"none":                          {repeat, "", 0, 0, false},
		"one flips, no misses":          {repeat, "", 0, 1, true},
		"a row of a case flips":         {repeat, "", 0, 0.1, true},
		"one flips, one missed":         {repeat, "", 1, 1, false},
		"two flip, one missed":          {repeat, "", 1, 2, true},
		"half of the share, by chance":  {repeat, "", 40, 7, false},
		"more than half of the share":   {repeat, "", 40, 8, true},
		"half of the cases":             {repeat, "", 40, 16, true},
		"one flips elsewhere":           {process, "", 0, 1, false},
		"two flip elsewhere":            {process, "", 0, 3, false},
		"more flip elsewhere":           {process, "", 0, 4, true},
		"twice the share, by chance":    {process, "", 20, 10, false},
		"more than twice the share":     {process, "", 20, 12, true},
		"more in a batch":               {batch, "", 0, 4, true},
		"limits of outputs":             {repeat, validators.JitterLimits, 0, 16, false},
		"limits of outputs, in a batch": {batch, validators.JitterLimits, 0, 16, true},
		"dimensions are no second run":  {evidence.TrialDimension, "", 0, 16, false},
		"none is no way around":         {repeat, validators.JitterNone, 0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rate := &validators.AtLeast{Min: 0.95}
			limits := validators.Limits{V: validators.LimitsVersion, Confidence: 0.95,
				Precisions: map[string]validators.PrecisionLimits{"int8": {Outputs: map[string]validators.OutputLimits{
					"class": {Equal: rate}, "logits": {Top1: rate}, "free": {Top1: &validators.AtLeast{}}}}}}
			if c.jitter != "" {
				limits.Consistency = &validators.ConsistencyLimits{Jitter: c.jitter}
			}
			of := func(misses float64, cases int) map[string]tensor.Result {
				r := tensor.Result{Cases: cases, FullCases: cases, Top1Cases: cases, EqualMisses: misses, Top1Misses: misses}
				return map[string]tensor.Result{"class": r, "logits": r, "free": r}
			}
			got := limits.JudgeAgain(c.kind, "int8", of(c.differ, 32), of(c.missed, 400))
			if want := map[bool]int{true: 2}[c.fails]; len(got) != want {
				t.Fatalf("reasons %+v, want %d", got, want)
			}
			if c.fails && (got[0].Output != "class" || got[0].Figure != "equal" || got[1].Figure != "top1" ||
				!strings.Contains(got[0].Message, "more than its own errors explain")) {
				t.Errorf("reasons %+v, want equal of class and top1 of logits, which say that its own errors do not explain it", got)
			}
		})
	}
}
