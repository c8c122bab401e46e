package serving

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// session is one request to run engines.
type session struct {
	request driverproc.Request
	config  Config
	log     io.Writer

	shards []*caserun.Shard
	server *server // that runs now; nil for none
	path   string  // of the engine that it serves
	rate   float64 // of the fastest run under load
}

// run runs engines, each on a server of its own. Engines under load follow the one with the same files on the server that it has.
func run(ctx context.Context, r driverproc.Request, c Config, log io.Writer) (_ any, err error) {
	s := &session{request: r, config: c, log: log}
	defer func() { err = errors.Join(err, s.server.close()) }()
	var result toolchain.RunResult
	for _, e := range r.Run.Engines {
		one, err := s.one(ctx, e)
		if err != nil {
			return nil, err
		}
		result.Engines = append(result.Engines, one)
	}
	result.Cases = caserun.Cases(s.shards)
	return result, nil
}

// one runs an engine.
func (s *session) one(ctx context.Context, e toolchain.RunEngine) (toolchain.EngineResult, error) {
	for name := range e.Load {
		return toolchain.EngineResult{}, driverproc.Errorf(driverproc.BadInput, "option %s: a model server has no load options: its manifest has all", name)
	}
	load, err := s.open(ctx, e)
	if err != nil {
		return toolchain.EngineResult{}, err
	}
	asked := &engine{server: s.server, config: s.config, asked: newRequests()}
	if e.ServerLoad != nil {
		result, err := underLoad(ctx, s.request, asked, e.ID, *e.ServerLoad, s.shards, s.rate)
		s.rate, result.LoadNS = max(s.rate, result.PerSecond()), load.Nanoseconds()
		return result, err
	}
	results, err := caserun.Run(ctx, s.request, s.shards, []caserun.Entry{{Engine: asked, ID: e.ID, Outputs: names(s.config.Outputs)}})
	if err != nil {
		return toolchain.EngineResult{}, err
	}
	results[0].LoadNS = load.Nanoseconds()
	return results[0], nil
}

// open starts the server for an engine, unless it runs already and is to be loaded. It returns how long that took.
func (s *session) open(ctx context.Context, e toolchain.RunEngine) (time.Duration, error) {
	if s.server != nil && s.path == e.Path && e.ServerLoad != nil {
		return 0, nil
	}
	before := s.server
	s.server, s.path = nil, e.Path
	if err := before.close(); err != nil {
		return 0, err
	}
	begin := time.Now()
	var err error
	if s.server, err = open(ctx, s.request, s.config, nameOf(s.request.Inputs, e.Path), false, s.log); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if s.shards != nil {
		return took, nil
	}
	if err := s.learn(ctx); err != nil {
		return 0, err
	}
	if s.config.Outputs, err = selected(s.config, s.request.Run.SelectOutputs); err != nil {
		return 0, err
	}
	if s.shards, err = caserun.Open(inputs(s.request, toolchain.RoleCases), e.ID, s.config.Inputs); err != nil {
		return 0, err
	}
	return took, caserun.CheckRounds(s.request.Run.RunOptions, s.shards)
}

// learn takes the interface of the model from what the server tells, if nothing else has it.
func (s *session) learn(ctx context.Context) error {
	if s.config.Inputs != nil {
		return nil
	}
	told, err := s.server.about(ctx)
	if err != nil {
		return driverproc.Errorf(driverproc.ToolFailed, "%v", err)
	}
	if s.config.Inputs, err = toldSlots(told.Inputs); err == nil {
		s.config.Outputs, err = toldSlots(told.Outputs)
	}
	if err == nil && len(s.config.Inputs)*len(s.config.Outputs) == 0 {
		err = errors.New("it tells no inputs or no outputs of the model")
	}
	if err != nil {
		return driverproc.Errorf(driverproc.BadInput, "the server %s: %v", s.config.Name, err)
	}
	s.server.hangUp()
	if s.server.client, err = dial(s.config, s.server.at); err != nil {
		return err
	}
	return s.server.wait(ctx, s.config)
}

// toldSlots are the values that a server tells of.
func toldSlots(told []Told) ([]caserun.Slot, error) {
	var all []caserun.Slot
	for _, v := range told {
		slot, err := ofDatatype(v.Name, v.Datatype)
		if err != nil {
			return nil, err
		}
		slot.Shape = v.Shape
		all = append(all, slot)
	}
	return all, nil
}

// selected returns the outputs with these names, or all if none is named.
func selected(c Config, only []string) (found []caserun.Slot, err error) {
	if len(only) == 0 {
		return c.Outputs, nil
	}
	for _, name := range only {
		at := slices.IndexFunc(c.Outputs, func(v caserun.Slot) bool { return v.Name == name })
		if at < 0 {
			return nil, driverproc.Errorf(driverproc.BadInput, "no output %q: want some of %s", name, strings.Join(names(c.Outputs), ", "))
		}
		found = append(found, c.Outputs[at])
	}
	return found, nil
}
