package serving

import (
	"context"
	"encoding/json"
	"io"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// Args returns the arguments with which the program must call [Main]. The first is its own name.
func Args() []string { return []string{"mlpromote", "driver", "server"} }

// OptionServer is the option of a job that has a [Config].
const OptionServer = "server"

// Main does the request on stdin with the server that it names, and returns the exit status of the process. The output of the server goes to log.
func Main(ctx context.Context, stdin io.Reader, log io.Writer) int {
	return driverproc.Serve(ctx, stdin, log, func(ctx context.Context, r driverproc.Request) (any, error) {
		return Handle(ctx, r, log)
	})
}

// Handle does one request of mlpromote.driver/v1.
func Handle(ctx context.Context, r driverproc.Request, log io.Writer) (any, error) {
	config, err := configOf(r.Options)
	if err != nil {
		return nil, err
	}
	switch r.Verb {
	case toolchain.VerbProbe:
		return probe(ctx, r, config, log)
	case toolchain.VerbRun:
		return run(ctx, r, config, log)
	}
	return nil, driverproc.Errorf(driverproc.BadInput, "a server does not %s: it has probe and run", r.Verb)
}

func configOf(options map[string]any) (config Config, err error) {
	text, err := json.Marshal(options[OptionServer])
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil || len(config.Command) == 0 && config.URL == "" {
		return config, driverproc.Errorf(driverproc.BadInput, "option %s: want the command or the URL of a server: %v", OptionServer, err)
	}
	for name := range options {
		if name != OptionServer {
			return config, driverproc.Errorf(driverproc.BadInput, "option %q: a server has %s", name, OptionServer)
		}
	}
	return config, nil
}

// ProbeResult is the result of a probe of an engine.
type ProbeResult struct {
	Tool map[string]string `json:"tool"` // as [toolchain.ProbeResult] has it
	About
	// Disagrees names the differences between the server's description of the model and its interface; empty for none.
	Disagrees string `json:"disagrees,omitempty"`
	// Blank is true if the server got ready and answered although the engine's files were zeros: it serves something else.
	Blank bool `json:"blank,omitempty"`
}

// probe starts the server for the first engine among the inputs: as it is, with zeros in its files, and as it is again. Without an engine it does
// nothing.
func probe(ctx context.Context, r driverproc.Request, c Config, log io.Writer) (any, error) {
	result := ProbeResult{Tool: map[string]string{}}
	models := inputs(r, toolchain.RoleModel)
	if len(models) == 0 {
		return result, nil
	}
	entry := models[0].Name
	shards, err := caserun.Open(inputs(r, toolchain.RoleCases), c.Name, c.Inputs)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, r, c, entry, false, log)
	if err != nil {
		return nil, err
	}
	asked := &engine{server: s, config: c, asked: newRequests()}
	first := asked.Feed(shards[0], 0)
	if first == nil {
		_, first = asked.Run(ctx)
	}
	result.About, err = s.about(ctx)
	changed := s.close()
	if err != nil {
		return nil, driverproc.Errorf(driverproc.ToolFailed, "%v", err)
	}
	switch result.Disagrees = c.Disagreement(result.About); {
	case result.Disagrees != "":
	case isUnavailable(first):
		return nil, first
	case first != nil:
		result.Disagrees = "it does not take the first case: " + first.Error()
	case changed != nil:
		result.Disagrees = changed.Error()
	}
	if len(c.Command) == 0 || result.Disagrees != "" {
		return result, nil
	}
	result.Blank, err = answersBlank(ctx, r, c, entry, asked, log)
	return result, err
}

// answersBlank reports whether the server answers a case with zeros in place of the engine. Errors: one that does not answer on the engine
// afterwards, so that its silence shows nothing.
func answersBlank(ctx context.Context, r driverproc.Request, c Config, entry string, asked *engine, log io.Writer) (bool, error) {
	silent, err := answers(ctx, r, c, entry, asked, true, log)
	if err != nil || silent == nil {
		return err == nil, err
	}
	again, err := answers(ctx, r, c, entry, asked, false, log)
	if err == nil && again != nil { // a lock, or a port that is taken
		err = driverproc.Errorf(driverproc.Unavailable, "it does not answer after a further start on the engine, so its silence on zeros shows nothing: %v", again)
	}
	return false, err
}

// answers starts the server once more, with zeros in place of the engine if blank is true, and asks it a case. It returns why the server does not
// answer, or nil.
func answers(ctx context.Context, r driverproc.Request, c Config, entry string, asked *engine, blank bool, log io.Writer) (why, err error) {
	s, err := open(ctx, r, c, entry, blank, log)
	if isUnavailable(err) {
		return err, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	asked.server = s
	_, why = asked.Run(ctx)
	_ = s.close() // whatever became of the folder
	return why, ctx.Err()
}
