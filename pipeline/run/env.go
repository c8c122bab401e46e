package run

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/pipeline/fitness"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
)

// Caution says something to a person.
func (env *Env) Caution(texts ...string) {
	if env.Warn == nil {
		return
	}
	for _, text := range texts {
		env.Warn(text)
	}
}

// Env is the parts that the verbs work with. A field is required by the verbs that
// use it, unless its comment says what they do without.
type Env struct {
	Registry api.Interface
	Parts    storage.PartStore
	Sign     storage.SignEvidence
	// Inspected is true where the registry looks at the bytes of every part that is pushed to it. Otherwise Assemble looks
	// at engines that other machines pushed.
	Inspected bool
	// OpenKey opens the key of a role and checks that the registry trusts it for a model in an environment, so that a wrong password
	// or key is known before the work that the key is for. Nil opens nothing.
	OpenKey func(ctx context.Context, role evidence.Role, environment, model string) error
	// Toolchain gives the drivers of a toolchain, installing it where asked to.
	Toolchain func(ctx context.Context, name string) (Toolchain, error)
	// BeforeInstall is called before a toolchain is installed, which its error prevents, so that what would end a build later
	// ends it before the download. Nil: nothing.
	BeforeInstall func(ctx context.Context) error
	// ImporterOf gives the toolchain that imports a format of sources.
	ImporterOf func(format string) (string, error)
	// Server is the name of the model server through which Verify runs engines; empty runs them on their runtimes.
	Server string
	// Through opens a model server for an engine, of which the file that is loaded is the first. cases is a shard, and the scratch folder does
	// not exist.
	Through func(ctx context.Context, server string, engine []toolchain.Input, iface validators.Interface, cases toolchain.Input, scratch string) (toolchain.Served, error)
	// Node describes this machine with the runtimes that are given to it.
	Node func(ctx context.Context, runtimes map[string]string) (artifact.Node, error)
	// Origin reads where a spec comes from, for the provenance: the commit and the CI job. used are the files
	// that it uses, absolute. Nil says nothing.
	Origin func(ctx context.Context, spec string, used []string) (*evidence.Origin, error)
	// Space says what is free where a build writes. Nil asks nothing.
	Space func(ctx context.Context) (Space, error)
	// Unfinished is a folder for what verifications have run until they are done. Empty
	// keeps nothing.
	Unfinished string
	// Sensitivity is how long Verify looks, for each int8 variant that failed, for the nodes
	// that cost it its limits. Zero is not at all.
	Sensitivity time.Duration
	// Destination is the environment that Verify compares engines with, if limits ask; empty for the
	// first that takes releases from the one of the release.
	Destination string
	// Targets are those whose engines Verify runs; empty: all that this machine meets.
	Targets []string
	// Engines are those that Verify runs, each by its label, target, variant or digest; empty: all that this machine meets.
	Engines []string
	// LatencyTime is what the timed runs of one engine may take in Verify. Zero is a second where
	// nothing limits latency, and 3 to 30 where something does.
	LatencyTime time.Duration
	// Fitness reads what this machine does while latency is measured. Nil is fitness.Read.
	Fitness func() fitness.Reading
	// Score runs a program of the user that gives a score to each case. It is needed for the metrics
	// `program` alone.
	Score    func(ctx context.Context, job toolchain.ScoreJob) ([]float64, error)
	Tool     evidence.ToolIdentity
	Planned  func(plan.Plan) // told what Build will make, before it does; may be nil
	Progress Progress        // nil shows nothing
	Warn     func(string)    // told what a person should look at, although the work goes on; may be nil
	Now      storage.Clock   // nil means time.Now

	// ExtraTime is what the runs of an engine beyond its cases may take in Verify. Zero is a minute.
	ExtraTime time.Duration
	// ChunkFrom is the size of models times cases from which Verify runs an engine chunk by chunk. Zero is the usual one.
	ChunkFrom int64
	// CrossCheckBelow is the size of the models that Build evaluates a second time. Zero is the usual one.
	CrossCheckBelow int64
	// MostLoads is how often Verify loads an engine again at most. Zero is 16.
	MostLoads int
	// Draw draws a number below n, for the sizes and cases that Verify chooses. Nil draws by chance.
	Draw func(n int) int
}

// Toolchain is the drivers of one install.
type Toolchain struct {
	Profile   toolchain.Profile
	Engines   toolchain.Driver // compiles and runs
	Timing    toolchain.Driver // runs, never from a cache
	Quantizer toolchain.Driver // nil: this toolchain quantizes nothing
	Importer  toolchain.Driver // nil: this toolchain imports nothing
	Framework string           // what an importer predicts with: "scikit-learn"
	Evaluator toolchain.Driver // runs ONNX models by ONNX's own reference evaluator; nil: there is none
}

// Progress is told when a step starts and how it ended. It is called from several
// goroutines.
type Progress func(progress.Step)

// Reporter tells a Progress about steps.
type Reporter struct {
	To  Progress // nil shows nothing
	Now storage.Clock
}

// Step reports the start of work and returns what reports its end. In between it reports every
// second that the work goes on.
func (r Reporter) Step(name string) func(note string, err error, details ...string) {
	_, done := r.StepIn(context.Background(), name)
	return done
}

// StepIn is step for work whose drivers say how far they are: they do so to the context that it
// returns.
func (r Reporter) StepIn(ctx context.Context, name string) (context.Context, func(note string, err error, details ...string)) {
	if r.To == nil {
		return ctx, func(string, error, ...string) {}
	}
	running := progress.Begin(r.To, name, r.Now)
	ctx = toolchain.WithProgress(ctx, func(done, of int) {
		running.Note(fmt.Sprintf("%d of %s", done, registry.Count(of, "run")))
	})
	return ctx, running.End
}

// Report returns what reports steps to the progress of the environment.
func (env *Env) Report() Reporter { return Reporter{env.Progress, env.Time} }

// Step reports the start of work and returns what reports its end.
func (env *Env) Step(name string) func(note string, err error, details ...string) {
	return env.Report().Step(name)
}

// UseKey opens the key of a role that may sign for a model in an environment. It does nothing if the keys are open already.
func (env *Env) UseKey(ctx context.Context, role evidence.Role, environment, model string) error {
	if env.OpenKey == nil {
		return nil
	}
	return env.OpenKey(ctx, role, environment, model)
}

// UseBuilderKey opens the key that signs what is built of a model.
func (env *Env) UseBuilderKey(ctx context.Context, model string) error {
	environments, err := env.Registry.Environments(ctx)
	if err != nil {
		return err
	}
	return env.UseKey(ctx, evidence.RoleBuilder, environments.First().Name, model)
}

// Time returns the current time by the clock of the environment.
func (env *Env) Time() time.Time {
	if env.Now != nil {
		return env.Now()
	}
	return time.Now()
}

// Space is what is free where a build writes: of several places, where there is least.
type Space struct {
	Where string
	Free  int64 // bytes
}
