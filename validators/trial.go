package validators

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// The codes of reasons about trials: an engine or a builder that a comparison after another run convicts.
const (
	ReasonJitter       = "jitter"
	ReasonBatch        = "batch"
	ReasonDimension    = "dimension"
	ReasonGolden       = "golden_outputs"
	ReasonPlainLoad    = "plain_load"
	ReasonContradicted = "contradicted"
)

// Baseline is what the outputs of a trial are compared with.
type Baseline string

// The baselines.
const (
	BaselineGolden    Baseline = "golden"    // the golden outputs of the release
	BaselineReference Baseline = "reference" // what the reference model computes on this machine
	BaselineItself    Baseline = "itself"    // what the engine computed for the same cases
)

// The trials that are no consistency check.
const (
	TrialPlainLoad    evidence.ConsistencyKind = "plain load"
	TrialVerification evidence.ConsistencyKind = "verification"
)

// Trial is one more run, beyond the one that the cases are judged by, and its comparison.
type Trial struct {
	Kind     evidence.ConsistencyKind
	Baseline Baseline
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
	// Wanted is a trial that limits which require trials miss if a report does not have it.
	Wanted bool
}

// Trials lists the trials. Each run that an engine is judged by after the first is a row.
func Trials() []Trial { return slices.Clone(trials) }

// TrialOf returns the trial of a kind. A kind that this version does not know has no code.
func TrialOf(kind evidence.ConsistencyKind) Trial {
	at := slices.IndexFunc(trials, func(t Trial) bool { return t.Kind == kind })
	if at < 0 {
		return Trial{Kind: kind}
	}
	return trials[at]
}

var trials = []Trial{
	{Kind: evidence.ConsistencyGolden, Baseline: BaselineGolden, Code: ReasonGolden},
	{
		Kind: evidence.ConsistencyRepeat, Baseline: BaselineItself, Code: ReasonJitter, Words: "run again in one process",
		Again: true, Noise: noiseInProcess, SameCases: true, InProcess: true, Wanted: true,
	},
	{
		Kind: evidence.ConsistencyProcess, Baseline: BaselineItself, Code: ReasonJitter, Words: "run again in another process, in another order",
		Again: true, Noise: noiseElsewhere, SameCases: true, Wanted: true,
	},
	{Kind: evidence.ConsistencyLoad, Baseline: BaselineItself, Code: ReasonJitter, Again: true, Noise: noiseElsewhere, SameCases: true},
	{
		Kind: evidence.ConsistencyBatch, Baseline: BaselineItself, Code: ReasonBatch, Words: "in a batch cases give something else than alone",
		Again: true, Noise: noiseElsewhere,
	},
	{
		Kind: evidence.ConsistencyDimension, Baseline: BaselineReference, Code: ReasonDimension,
		Words: "the engine computes something else than the reference model",
	},
	{Kind: TrialPlainLoad, Baseline: BaselineGolden, Code: ReasonPlainLoad, Words: "a plain load of the engine, without its load profile, fails"},
	{Kind: TrialVerification, Baseline: BaselineItself, Code: ReasonContradicted},
}
