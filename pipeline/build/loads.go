package build

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// checkLoads loads each engine whose target this machine meets in a process of its own, runs it
// on the first case, and compares names, types and shapes of its outputs with those of the
// reference. It notes which engines ran; no cache answers for this machine. Where the runtime
// does not work here, it returns a warning and the engine counts as not loaded. An engine with
// other outputs, or one that does not run, gets the error as its failure.
func checkLoads(ctx context.Context, m Maker, to run.Reporter, all *made) (warnings []string, err error) {
	here := loadedHere(m, all.engines)
	if len(here) == 0 {
		return nil, nil
	}
	ctx, done := to.StepIn(ctx, "load "+registry.Count(len(here), "engine"))
	warnings, err = checkEach(ctx, m, all, here)
	done("", err)
	return warnings, err
}

// loadedHere lists the engines that this machine can load.
func loadedHere(m Maker, engines []BuiltEngine) []int {
	var here []int
	for i, e := range engines {
		if e.failed == nil && !e.Tool.Profile.CompileOnly && len(e.Engine.Target.Match(m.Node, m.Node.Runtime())) == 0 {
			here = append(here, i)
		}
	}
	return here
}

func checkEach(ctx context.Context, m Maker, all *made, here []int) (warnings []string, err error) {
	first, err := firstCase(m)
	if err != nil {
		return nil, err
	}
	for n, i := range here {
		e := &all.engines[i]
		same := func(other int) bool { return e.sameFiles(all.engines[other]) }
		if twin := slices.IndexFunc(here[:n], same); twin >= 0 {
			e.loaded, e.failed = all.engines[here[twin]].loaded, all.engines[here[twin]].failed
			continue
		}
		err := checkLoad(ctx, m, *e, first, all.golden, fmt.Sprintf("loaded-%d", i))
		switch {
		case registry.HasCode(err, registry.CodeUnavailable) && !e.Tool.Works(ctx, m.Scratch, m.Node):
			warnings = append(warnings, fmt.Sprintf("%s was not loaded here, so verify has to find out whether it loads: %v", e.Engine.Label(), err))
		case ctx.Err() != nil:
			return warnings, err
		case err != nil:
			e.failed = e.keepWhole(registry.Errorf(registry.CodeOf(err), "load %s: %w", e.Engine.Label(), err))
			if registry.HasCode(err, registry.CodeInternal) && e.Tool.Profile.Level != "" && e.Engine.Load == nil {
				e.failed = registry.WithHint(e.failed, "ONNX Runtime's optimizer can fail on a graph that is right: "+
					"give the variant a load profile with less of it, load: {options: {graph_optimization_level: extended}, required: true}")
			}
		default:
			e.loaded = true
		}
	}
	return warnings, nil
}

// sameFiles reports whether another engine has the same bytes for the same runtime and providers,
// and is loaded alike.
func (e BuiltEngine) sameFiles(other BuiltEngine) bool {
	return e.Tool.LoadsAlike(e.Engine, other.Tool, other.Engine) && slices.EqualFunc(e.Files, other.Files,
		func(a, b toolchain.OutputFile) bool { return a.Name == b.Name && a.Digest == b.Digest })
}

// firstCase is the first case as the input of a run.
func firstCase(m Maker) (toolchain.Input, error) {
	shard := m.Inputs.Cases.Record.Shards[0]
	to := filepath.Join(m.Scratch, "first-case", shard.File)
	rows := run.RowsOf{Path: m.Inputs.Cases.Engines()[0].Path, First: 0, End: 1, Count: int64(shard.Count)}
	if err := run.WriteRows(to, []run.RowsOf{rows}); err != nil {
		return toolchain.Input{}, err
	}
	return toolchain.FileInput(toolchain.RoleCases, shard.File, to)
}

// checkLoad runs an engine on a case and compares what it left with the golden outputs.
func checkLoad(ctx context.Context, m Maker, e BuiltEngine, first toolchain.Input, golden goldenset.Set, name string) error {
	c, err := runnable(m, e.Tool, e.Engine).Candidate(name, e.Files)
	if err != nil {
		return err
	}
	execution := e.Tool.Run(toolchain.RunOptions{})
	execution.Job.Machine, execution.Job.Inputs, execution.Job.Budget = run.Machine(m.Node), []toolchain.Input{first}, m.Budgets[e.Tool.Identity.Name]
	execution.AddCandidate(c)
	dir := filepath.Join(m.Scratch, name)
	if _, err := execution.Do(ctx, dir); err != nil {
		return err
	}
	return sameOutputs(golden.Files[0].Path, filepath.Join(dir, "outputs", name, first.Name))
}

// sameOutputs compares names, types and shapes of one case of an engine with those of the
// reference. Errors: CodeInvalid.
func sameOutputs(golden, engine string) error {
	want, err := tensorfile.Open(golden, tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer want.Close()
	got, err := tensorfile.Open(engine, tensorfile.Limits{})
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "its outputs cannot be read: %w", err)
	}
	defer got.Close()
	for _, name := range want.Names() {
		info, _ := want.Info(name)
		found, ok := got.Info(name)
		switch {
		case len(info.Shape) == 0:
			return registry.Errorf(registry.CodeInvalid, "golden output %q has no dimension for the cases", name)
		case !ok:
			return registry.Errorf(registry.CodeInvalid, "the engine has no output %q: it has %s", name, strings.Join(got.Names(), ", "))
		case len(found.Shape) == 0 || found.Shape[0] != 1:
			return registry.Errorf(registry.CodeInvalid, "output %q has the shape %v for one case", name, found.Shape)
		case found.DType != info.DType || !slices.Equal(found.Shape[1:], info.Shape[1:]):
			return registry.Errorf(registry.CodeInvalid, "output %q is %s %v for one case, the reference's is %s %v",
				name, found.DType, found.Shape[1:], info.DType, info.Shape[1:])
		}
	}
	return nil
}
