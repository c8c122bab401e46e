package validators

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
)

// The codes of reasons about trials: an engine or a builder that a comparison after another run convicts.
const (
	ReasonJitter       = "jitter"
	ReasonBatch        = "batch"
	ReasonDimension    = "dimension"
	ReasonBeyond       = "beyond"
	ReasonClients      = "clients"
	ReasonGolden       = "golden_outputs"
	ReasonPlainLoad    = "plain_load"
	ReasonContradicted = "contradicted"
)

// TrialVerification is an earlier verification of the engine. No check has it: its report is the evidence.
const TrialVerification evidence.Trial = "verification"

// TrialRow has the rules of one trial beyond the run of all cases, and of its comparison.
type TrialRow struct {
	Trial    evidence.Trial
	Baseline evidence.Baseline
	Line     figure.Line
	Code     string // of its reasons
	Words    string // how a failure is described; empty where that depends on the run
	// Again is a trial whose runs differ by noise alone: each output may differ by Noise dB more than
	// the engine is off from the reference.
	Again bool
	Noise float64
	// SameCases is a trial of the same inputs: what differs is jitter. InProcess is one whose runs share
	// a process, where runtimes usually give the same bits.
	SameCases bool
	InProcess bool
	// Finite is a trial that is judged by NaN and infinities alone: no limit holds beyond the cases.
	Finite bool
	// Wanted is a trial that limits which require trials miss if a report does not have it.
	Wanted bool
}

// Check returns a check of the trial at a size that has not run yet.
func (t TrialRow) Check(size string) evidence.Check {
	return evidence.Check{Trial: t.Trial, Size: size, Baseline: t.Baseline, Figure: figure.MaxAbs, Verdict: evidence.VerdictUndecided}
}

// Trials lists the trials. Each run that an engine is judged by after the first is a row.
func Trials() []TrialRow { return slices.Clone(trials) }

// TrialOf returns the row of a trial. A trial that this version does not know has no code.
func TrialOf(trial evidence.Trial) TrialRow {
	at := slices.IndexFunc(trials, func(t TrialRow) bool { return t.Trial == trial })
	if at < 0 {
		return TrialRow{Trial: trial}
	}
	return trials[at]
}

var trials = []TrialRow{
	{Trial: evidence.TrialGolden, Line: figure.Runs, Baseline: evidence.BaselineGolden, Code: ReasonGolden},
	{
		Trial: evidence.TrialRepeat, Line: figure.Again, Baseline: evidence.BaselineItself, Code: ReasonJitter, Words: "run again in one process",
		Again: true, Noise: noiseInProcess, SameCases: true, InProcess: true, Wanted: true,
	},
	{
		Trial: evidence.TrialProcess, Line: figure.Again, Baseline: evidence.BaselineItself, Code: ReasonJitter, Words: "run again in another process, in another order",
		Again: true, Noise: noiseElsewhere, SameCases: true, Wanted: true,
	},
	{Trial: evidence.TrialLoad, Line: figure.Again, Baseline: evidence.BaselineItself, Code: ReasonJitter, Again: true, Noise: noiseElsewhere, SameCases: true},
	{
		Trial: evidence.TrialBatch, Line: figure.Again, Baseline: evidence.BaselineItself, Code: ReasonBatch, Words: "in a batch cases give something else than alone",
		Again: true, Noise: noiseElsewhere,
	},
	{
		Trial: evidence.TrialDimension, Line: figure.Again, Baseline: evidence.BaselineReference, Code: ReasonDimension,
		Words: "the engine computes something else than the reference model",
	},
	{
		Trial: evidence.TrialBeyond, Line: figure.Runs, Baseline: evidence.BaselineReference, Code: ReasonBeyond,
		Words: "of inputs twice as large as the cases, the engine makes values that are not finite, and the reference model does not", Finite: true,
	},
	{Trial: evidence.TrialClients, Line: figure.Again, Baseline: evidence.BaselineGolden, Code: ReasonClients, Words: "with several clients at the same time, the server gives other answers"},
	{Trial: evidence.TrialPlainLoad, Line: figure.Runs, Baseline: evidence.BaselineGolden, Code: ReasonPlainLoad, Words: "a plain load of the engine, without its load profile, fails"},
	{Trial: TrialVerification, Line: figure.Runs, Baseline: evidence.BaselineItself, Code: ReasonContradicted},
}
