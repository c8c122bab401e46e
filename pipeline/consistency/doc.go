// Package consistency finds out what an engine does beyond the cases of a verification: whether it gives
// the same when it runs the same again or is loaded again, what a case gives in a batch with others,
// and what it computes at the smallest and largest sizes of its open dimensions.
//
// A check is other shards of cases: New makes them from the cases of a release. Reference runs the
// reference model on those that need it, and Engine runs an engine and compares. The limits that decide are those
// of the engine; the caller brings them and the means to run.
package consistency

import (
	"context"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Bounds of what checks run.
const (
	repeatCases     = 32
	otherCases      = 8
	smallBatch      = 2
	largeBatch      = 8 // above, a batch may be as far from its cases alone as the reference model's batch
	defaultMaxBytes = 256 << 20
	// A [Loader] runs as many cases with each load as let loadsWanted loads take loadsTime: many loads of few cases show more
	// than few loads of many.
	loadsWanted = 16
	loadsTime   = time.Second
	leastLoaded = 2
)

// Options say what to make checks of, and what they may cost.
type Options struct {
	Interface validators.Interface
	Dir       string           // folder of the cases
	Shards    []artifact.Shard // of the cases
	Copies    map[int]bool     // numbers of cases that have the inputs of an earlier one: they are not picked
	Scratch   string           // folder for files, which the caller removes
	// Budget is the time that the runs of one engine may take, without loading it, as far as Run,
	// the time of one case, predicts it. What does not fit is left out and named. Loading is the
	// Runner's to bound, by the engine's own time: one that loads slowly takes no check from others.
	Budget, Run time.Duration
	// Repeats is how many repeated runs are wanted beyond those that the budget allows, in addition to its time; 0 asks for none.
	Repeats  int
	MaxBytes int64 // of the inputs and outputs of one check; 0 means 256 MiB
	// Draw returns a random number from 0 to n-1. It picks cases and batch sizes, so that a builder cannot predict them.
	// If it is nil, no random size is run, and the cases are evenly spaced.
	Draw func(n int) int
}

// Input is a file of cases for a run, with the tensors of package toolchain's VerbRun.
type Input struct {
	Name string
	Path string
}

// ErrNoTime is the error of a [Runner] that did not begin, since the time for runs is used up.
var ErrNoTime = errors.New("no time is left")

// ErrStopped is the error of a [Runner] that began and did not end in its time: the engine may hang.
var ErrStopped = errors.New("it did not end in its time")

// Runner runs a model on the inputs in one new process, in the order of their names. Below dir,
// which is new, it leaves a folder with a file of outputs for each, with the input's name, and
// returns its path. Errors: [ErrNoTime], [ErrStopped], CodeUnavailable for a run that was
// stopped, and others of the model.
type Runner func(ctx context.Context, inputs []Input, dir string) (outputs string, err error)

// Loader loads a model several times, one after the other in one new process, and each time runs the inputs as a [Runner] does.
// It returns the folders of the outputs, one for each load. Errors: those of a Runner.
type Loader func(ctx context.Context, inputs []Input, dir string) (outputs []string, err error)

// Judge decides by the limits of an engine what a check of a kind found. It is not given accuracy.
type Judge func(kind evidence.Trial, outputs map[string]tensor.Result, cases int) (evidence.Verdict, []evidence.Reason)

// Engine is an engine to check.
type Engine struct {
	Run Runner
	// Load loads the engine several times. Nil: it is not checked.
	Load    Loader
	Outputs string // folder of its outputs for the cases, of another process
	// Comparison has tolerances, masks and the folder of golden outputs, with a file for each shard of the cases.
	Comparison parity.Run
	// Exact is true if two runs of the same cases must not differ at all.
	Exact bool
	Judge Judge
}

// Found is what the checks of an engine found.
type Found struct {
	Checks evidence.Checks
	Failed []evidence.Reason // of each check that failed
	// Open are the reasons why an engine whose checks all hold is undecided: a run of it was stopped
	// by time, or none could be done for want of time.
	Open []evidence.Reason
}

// Set is the checks for the engines of one verification.
type Set struct {
	Options
	repeat    []shard // the same cases, in turns: again and again in one process, the first time in another order
	turns     int     // how often
	loads     []shard // some of these cases, for an engine that is loaded again
	trials    []trial
	leftOut   evidence.Checks
	late      bool    // something is left out for want of time
	model     Runner  // the reference model
	reference outcome // of the reference model, for the shards that it was run on
}

// trial is a check with inputs of its own.
type trial struct {
	kind   evidence.Trial
	what   string
	note   string
	shards []shard
	batch  int // how many cases are stacked; 0 for cases that are compared with the reference model's
}

// needsReference reports whether nothing but the reference model's outputs shows whether the engine is right. A batch is compared with
// its cases alone, and values that are finite need no comparison.
func (t trial) needsReference() bool { return t.batch == 0 && !validators.TrialOf(t.kind).Finite }

// shard is a file of cases.
type shard struct {
	Input
	of    artifact.Shard // of the cases that these are from
	cases []slot
	ran   string // the name of a shard that begins with these cases and was run before; empty if there is none
}

// slot is one case of a shard, or one place in one of its batches.
type slot struct{ shard, row int } // where the case is from
