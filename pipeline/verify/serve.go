package verify

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// serve puts a model server in the place of the runtimes of candidates: the one that the environment names, or that is the runtime of their
// toolchain. bare keeps them as they are on other runtimes, for times.
func serve(ctx context.Context, v *Session) error {
	v.faults = make(map[string]error)
	for i, c := range v.candidates {
		server := cmp.Or(v.Env.Server, c.Tool.Profile.Server)
		if server == "" {
			continue
		}
		inputs, _, err := TimingCases(*v)
		if err != nil {
			return err
		}
		done := v.Env.Step("start the server with " + c.Engine.Label())
		served, fault, err := c.Through(ctx, v.Env, server, v.Iface, inputs[0])
		if err != nil {
			done("", err)
			return registry.Errorf(registry.CodeOf(err), "%s: %w", c.Engine.Label(), err)
		}
		done(served.Tool.Served.By+" "+served.Tool.Served.Version, nil)
		v.candidates[i] = served
		if c.Tool.Profile.Server == "" {
			c.ID = bareID(c.ID)
			v.bare = append(v.bare, c)
		}
		if fault != "" {
			v.faults[served.ID] = registry.Errorf(registry.CodeLimit, "the server %s %s: %s", served.Tool.Served.By, served.Tool.Served.Version, fault)
		}
	}
	if v.Env.Server != "" {
		v.Limits.Latency.Regression = nil // it compares engines on their runtimes
	}
	return nil
}

// bareID names an engine on its runtime, beside the same engine behind a server.
func bareID(id string) string { return "bare-" + id }

// underLoad sends all cases by several clients to the server of an engine. Each run is a check of its own: its answers are judged like those of
// one client. It returns the times of each, too.
func underLoad(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs, whole map[string]tensor.Result) (checks evidence.Checks, loads []evidence.LoadFigures, against validators.Findings, err error) {
	if c.Tool.Served == nil || c.Tool.Served.URL != "" { // one that runs already has users
		return nil, nil, nil, nil
	}
	ctx, done := v.Env.Report().StepIn(ctx, "send cases to the server by several clients")
	defer func() { done(registry.Count(len(checks), "run"), err) }()
	trial := validators.TrialOf(evidence.TrialClients)
	left := newExtra(v, c.ID, outputs, 1)
	rounds, least := toolchain.PlanServerLoads(outputs.Engines, c.ID, v.Cases.Set.Count, left.left)
	left.more(least)
	execution := c.Tool.Run(toolchain.RunOptions{Rounds: rounds})
	execution.Job.Machine, execution.Job.Inputs = run.Machine(v.Node), v.Cases.Inputs(toolchain.RoleCases)
	execution.AddCandidate(c)
	once := execution.Job.Run.Engines[0]
	execution.Job.Run.Engines = nil
	for i, load := range toolchain.ServerLoads() {
		once.ID, once.ServerLoad = fmt.Sprintf("%s-clients-%d", c.ID, i), &load
		execution.Job.Run.Engines = append(execution.Job.Run.Engines, once)
	}
	dir := filepath.Join(v.Scratch, "clients-"+c.ID)
	err = left.do(ctx, &execution, dir)
	var ran toolchain.RunResult
	if err == nil {
		ran, err = execution.Outcome.RunResult(*execution.Job.Run)
	}
	if ctx.Err() != nil {
		return nil, nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, notLoaded(err), nil
	}
	compared, err := comparisonOfSome(ctx, v, c.Engine.Precision)
	if err != nil {
		return nil, nil, nil, err
	}
	for i, load := range toolchain.ServerLoads() {
		check := trial.Check("")
		check.Size, check.Cases = clientsText(load), v.Cases.Set.Count
		compared.Engine = filepath.Join(dir, "outputs", ran.Engines[i].ID)
		if err := judgeSome(ctx, v, c, compared, whole, &check); err != nil {
			return nil, nil, nil, err
		}
		if check.Verdict != evidence.VerdictPass {
			against = append(against, validators.Failed(evidence.Reason{Code: trial.Code, Trial: trial.Trial, Message: fmt.Sprintf("%s (%s): %s", trial.Words, check.Size, check.Message)})...)
		}
		checks, loads = append(checks, check), append(loads, loadFigures(load, ran.Engines[i], loads))
	}
	return checks, loads, against, nil
}

// notLoaded is what an error under load says about an engine. Time and memory that were not there are no fault of it.
func notLoaded(err error) validators.Findings {
	trial := validators.TrialOf(evidence.TrialClients)
	reason := evidence.Reason{Code: trial.Code, Trial: trial.Trial, Message: "with several clients at the same time: " + err.Error()}
	if registry.HasCode(err, registry.CodeUnavailable) {
		reason.Code, reason.Message = validators.ReasonNotRun, "requests by several clients did not end: "+err.Error()
		return validators.Undecided(reason)
	}
	return validators.Failed(reason)
}

func clientsText(load toolchain.ServerLoad) string {
	if load.Share > 0 {
		return fmt.Sprintf("%.0f %% of the highest rate", 100*load.Share)
	}
	return registry.Count(load.Clients, "client")
}

// loadFigures are the times of a run under load; before are those of the runs before it.
func loadFigures(load toolchain.ServerLoad, r toolchain.EngineResult, before []evidence.LoadFigures) evidence.LoadFigures {
	times := performance.Summarize(r.TimingsNS, EngineBatch)
	f := evidence.LoadFigures{Clients: load.Clients, Requests: len(r.TimingsNS), PerSecond: r.PerSecond(),
		P50Ns: times.P50Ns, P90Ns: times.P90Ns, P99Ns: times.P99Ns, P999Ns: performance.P999(r.TimingsNS), QueueNs: r.QueueNS}
	for _, b := range before {
		f.Rate = max(f.Rate, load.Share*b.PerSecond)
	}
	return f
}
