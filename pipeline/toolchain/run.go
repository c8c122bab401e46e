package toolchain

import (
	"regexp"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// RunOptions are the options of VerbRun. The inputs of role "cases" are safetensors shards
// whose tensors have a leading case dimension and the names of the model's inputs. For a model
// input of rank r, a tensor of rank r gives each case a leading dimension of 1 (the case
// dimension is the batch), one of rank r+1 gives it none. Tensors that are not inputs, such as
// labels, are ignored.
//
// Every engine leaves its outputs under outputs/<id>/, in shards with the names and counts of
// the cases. Where the leading dimension was kept, outputs with a leading dimension of 1 are
// stacked along it; all others get a case dimension in front.
type RunOptions struct {
	Engines       []RunEngine `json:"engines"`
	SelectOutputs []string    `json:"select_outputs,omitempty"` // empty: all
	Rounds        int         `json:"rounds,omitempty"`         // timed passes over all cases; 0 means 1
	Warmup        int         `json:"warmup,omitempty"`         // runs of each engine before the first timed one
	Order         Order       `json:"order,omitempty"`
	// Threads and Level are for engines without Load: threads within one operator, where 0 means
	// 1, and graph optimization at load, where "" means "disable_all".
	Threads int    `json:"threads,omitempty"`
	Level   string `json:"level,omitempty"`
	// Env is set in the environment of the driver's process, as a load profile asks for it.
	Env map[string]string `json:"env,omitempty"`
	// Shares requests the share of each execution provider in engines that declare some. One
	// more run finds it out, in a separate session, so that no timing contains it.
	Shares bool `json:"shares,omitempty"`
	// Profile is how many runs of the first case are made to find out where the time goes, of runtimes
	// that can say it, in a separate session; 0 is none.
	Profile int `json:"profile,omitempty"`
}

// RunEngine is an engine to run.
type RunEngine struct {
	ID   string `json:"id"`   // names its results and its folder of outputs
	Path string `json:"path"` // the Name of the input of role "model" that is loaded
	// Providers are the execution providers of ONNX Runtime that the engine declares, the
	// preferred one first; empty for other runtimes. Missing providers are skipped, as ONNX
	// Runtime does. EngineResult.Providers has those that really ran.
	Providers []artifact.Provider `json:"providers,omitempty"`
	// Operators are the Names of the inputs of role "operators" with the engine's custom
	// operators. These libraries are loaded before the engine.
	Operators []string `json:"operators,omitempty"`
	// Load are the options with which the runtime loads the engine, by its own names. An empty
	// map leaves all to the runtime, as a plain load does. With nil the run is fixed instead: one
	// thread, as RunOptions say, so that it gives the same bytes on machines of one kind.
	Load map[string]string `json:"load,omitzero"`
	// ServerLoad runs the cases with several clients, on an engine that a server serves; nil: one after the other.
	ServerLoad *ServerLoad `json:"server_load,omitempty"`
}

// ServerLoad is how requests come to a server.
type ServerLoad struct {
	Clients int `json:"clients"` // requests that are under way at the same time, at most
	// Share is the share of the highest rate of the engines before it in the run, at which requests begin; 0: each client sends its next
	// request when the last one is answered.
	Share float64 `json:"share,omitempty"`
}

// Order is how the runs of several engines follow each other.
type Order string

// The orders. Interleaved runs all engines on one case before the next, every other round in
// reverse, so that disturbances of the machine affect all engines alike.
const (
	OrderSequential  Order = "sequential" // also the zero value
	OrderInterleaved Order = "interleaved"
)

// RunResult is the Result of VerbRun.
type RunResult struct {
	Cases   int            `json:"cases"`   // in all shards
	Engines []EngineResult `json:"engines"` // in the order of the request
}

// EngineResult has the measurements of one engine.
type EngineResult struct {
	ID        string  `json:"id"`
	LoadNS    int64   `json:"load_ns"`            // to load it, nanoseconds
	PeakRSS   int64   `json:"peak_rss,omitempty"` // peak bytes of the process, if it ran only this engine
	TimingsNS []int64 `json:"timings_ns"`         // of each run, nanoseconds, round by round and in it case by case
	// ElapsedNS is how long all timed runs took under a ServerLoad, nanoseconds, and QueueNS how long a request waited on average in the
	// server, if that tells it.
	ElapsedNS int64 `json:"elapsed_ns,omitempty"`
	QueueNS   int64 `json:"queue_ns,omitempty"`
	// Providers is the share of each execution provider in the engine, if Shares requested it.
	Providers []evidence.ProviderShare `json:"providers,omitempty"`
	// Profile is where the time goes, if it was requested and the runtime can say it.
	Profile *RunProfile `json:"profile,omitempty"`
}

// PerSecond is the rate of runs under a ServerLoad; 0 for others.
func (e EngineResult) PerSecond() float64 {
	if e.ElapsedNS == 0 {
		return 0
	}
	return float64(len(e.TimingsNS)) / time.Duration(e.ElapsedNS).Seconds()
}

// maxClients bounds the clients of a ServerLoad.
const maxClients = 1024

func (l ServerLoad) validate() error {
	if l.Clients < 1 || l.Clients > maxClients || l.Share < 0 || l.Share > 1 {
		return registry.Errorf(registry.CodeInvalid, "run: server load of %d clients, share %v: want 1 to %d, and 0 to 1", l.Clients, l.Share, maxClients)
	}
	return nil
}

// ProbeResult is the Result of VerbProbe.
type ProbeResult struct {
	Tool   map[string]string `json:"tool"`             // versions as the running tool reports them
	Models []ModelInterface  `json:"models,omitempty"` // of the inputs of role "model" that are graphs
}

// ModelInterface is the inputs and outputs of a model.
type ModelInterface struct {
	Name    string       `json:"name"` // of the input
	Inputs  []ModelValue `json:"inputs"`
	Outputs []ModelValue `json:"outputs"`
}

// ModelValue is one input or output of a model.
type ModelValue struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"` // as package tensor names it: "float32"
	Shape []int64 `json:"shape"` // -1 if the dimension is open
}

// maxProfileRuns bounds the runs of a profile, of which the runtime keeps every operator.
const maxProfileRuns = 1000

// maxRounds bounds passes and warm-up runs.
const maxRounds = 1_000_000

var engineIDPattern = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

func (o RunOptions) validate(inputs map[[2]string]bool) error {
	if len(o.Engines) == 0 {
		return registry.Errorf(registry.CodeInvalid, "run: no engines")
	}
	if err := o.validateEngines(inputs); err != nil {
		return err
	}
	for name, value := range o.Env {
		if err := artifact.CheckLoadVariable(name, value); err != nil {
			return registry.Errorf(registry.CodeInvalid, "run: %w", err)
		}
	}
	switch {
	case o.Rounds < 0 || o.Rounds > maxRounds || o.Warmup < 0 || o.Warmup > maxRounds:
		return registry.Errorf(registry.CodeInvalid, "run: rounds %d, warmup %d: want 0 to %d", o.Rounds, o.Warmup, maxRounds)
	case o.Profile < 0 || o.Profile > maxProfileRuns:
		return registry.Errorf(registry.CodeInvalid, "run: profile %d: want 0 to %d runs", o.Profile, maxProfileRuns)
	case o.Threads < 0 || o.Threads > 1024:
		return registry.Errorf(registry.CodeInvalid, "run: threads %d: want 0 to 1024", o.Threads)
	case o.Order != "" && o.Order != OrderSequential && o.Order != OrderInterleaved:
		return registry.Errorf(registry.CodeInvalid,
			"run: order %q: want %s or %s", o.Order, OrderSequential, OrderInterleaved)
	}
	return nil
}

func (o RunOptions) validateEngines(inputs map[[2]string]bool) error {
	ids := make(map[string]bool, len(o.Engines))
	for _, e := range o.Engines {
		if !engineIDPattern.MatchString(e.ID) || ids[e.ID] {
			return registry.Errorf(registry.CodeInvalid, "run: engine id %q: want unique lower-case names", e.ID)
		}
		ids[e.ID] = true
		if !inputs[[2]string{RoleModel, e.Path}] {
			return registry.Errorf(registry.CodeInvalid, "run: engine %s: no input %s/%s", e.ID, RoleModel, e.Path)
		}
		if e.ServerLoad != nil {
			if err := e.ServerLoad.validate(); err != nil {
				return err
			}
		}
		for _, name := range e.Operators {
			if !inputs[[2]string{RoleOperators, name}] {
				return registry.Errorf(registry.CodeInvalid, "run: engine %s: no input %s/%s", e.ID, RoleOperators, name)
			}
		}
	}
	return nil
}
