package pipeline

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// checkLoads loads each engine whose target this machine meets in a process of its own, runs it
// on the first case, and compares names, types and shapes of its outputs with those of the
// reference. It notes which engines ran; no cache answers for this machine. Where the runtime
// does not work here, it returns a warning and the engine counts as not loaded. An engine with
// other outputs, or one that does not run, gets the error as its failure.
func (m maker) checkLoads(ctx context.Context, to reporter, all *made) (warnings []string, err error) {
	here := m.loadedHere(all.engines)
	if len(here) == 0 {
		return nil, nil
	}
	ctx, done := to.stepIn(ctx, "load "+registry.Count(len(here), "engine"))
	warnings, err = m.checkEach(ctx, all, here)
	done("", err)
	return warnings, err
}

// loadedHere lists the engines that this machine can load.
func (m maker) loadedHere(engines []builtEngine) []int {
	var here []int
	for i, e := range engines {
		if e.failed == nil && !e.tool.Profile.CompileOnly && len(e.engine.Target.Match(m.node, m.node.Runtime())) == 0 {
			here = append(here, i)
		}
	}
	return here
}

func (m maker) checkEach(ctx context.Context, all *made, here []int) (warnings []string, err error) {
	first, err := m.firstCase()
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
		err := m.checkLoad(ctx, *e, first, all.golden, fmt.Sprintf("loaded-%d", i))
		switch {
		case registry.HasCode(err, registry.CodeUnavailable) && !e.tool.works(ctx, m.scratch, m.node):
			warnings = append(warnings, fmt.Sprintf("%s was not loaded here, so verify has to find out whether it loads: %v", e.engine.Label(), err))
		case ctx.Err() != nil:
			return warnings, err
		case err != nil:
			e.failed = e.keepWhole(registry.Errorf(registry.CodeOf(err), "load %s: %w", e.engine.Label(), err))
			if registry.HasCode(err, registry.CodeInternal) && e.tool.Profile.Level != "" && e.engine.Load == nil {
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
func (e builtEngine) sameFiles(other builtEngine) bool {
	return e.tool.loadsAlike(e.engine, other.tool, other.engine) && slices.EqualFunc(e.files, other.files,
		func(a, b toolchain.OutputFile) bool { return a.Name == b.Name && a.Digest == b.Digest })
}

// loadsAlike reports whether the same bytes would be loaded alike as one engine and as the other: by
// the same runtime, load profile and providers, on the same kind of accelerator.
func (t tool) loadsAlike(engine registry.Engine, by tool, other registry.Engine) bool {
	sameProvider := func(a, b registry.Provider) bool { return a.Name == b.Name && maps.Equal(a.Options, b.Options) }
	return t.identity.Name == by.identity.Name && reflect.DeepEqual(engine.Load, other.Load) &&
		reflect.DeepEqual(engine.Target.Accelerator, other.Target.Accelerator) &&
		slices.EqualFunc(engine.Providers, other.Providers, sameProvider)
}

// firstCase is the first case as the input of a run.
func (m maker) firstCase() (toolchain.Input, error) {
	shard := m.inputs.Cases.Record.Shards[0]
	to := filepath.Join(m.scratch, "first-case", shard.File)
	rows := rowsOf{m.inputs.Cases.Engines()[0].Path, 0, 1, int64(shard.Count)}
	if err := writeRows(to, []rowsOf{rows}); err != nil {
		return toolchain.Input{}, err
	}
	return toolchain.FileInput(toolchain.RoleCases, shard.File, to)
}

// checkLoad runs an engine on a case and compares what it left with the golden outputs.
func (m maker) checkLoad(ctx context.Context, e builtEngine, first toolchain.Input, golden goldenSet, name string) error {
	c, err := m.runnable(e.tool, e.engine).candidate(name, e.files)
	if err != nil {
		return err
	}
	run := e.tool.run(toolchain.RunOptions{})
	run.job.Machine, run.job.Inputs, run.job.Budget = machine(m.node), []toolchain.Input{first}, m.budgets[e.tool.identity.Name]
	run.addCandidate(c)
	dir := filepath.Join(m.scratch, name)
	if _, err := run.do(ctx, dir); err != nil {
		return err
	}
	return sameOutputs(golden.files[0].Path, filepath.Join(dir, "outputs", name, first.Name))
}

// sameOutputs compares names, types and shapes of one case of an engine with those of the
// reference. Errors: CodeInvalid.
func sameOutputs(golden, engine string) error {
	want, err := tensor.Open(golden, tensor.Limits{})
	if err != nil {
		return err
	}
	defer want.Close()
	got, err := tensor.Open(engine, tensor.Limits{})
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
