package verify

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
)

// Analysis makes variants of a failing engine and compares them with the reference.
type Analysis struct {
	v     Session
	c     run.Candidate
	made  run.Recipe
	input []toolchain.Input // of the quantizer
}

// fetchOnce fetches material at its first call.
type fetchOnce func() (run.Material, error)

// NewAnalysis gathers the inputs of the quantizer from when the engine was built.
func NewAnalysis(v Session, c run.Candidate, made run.Recipe, calibration fetchOnce) (*Analysis, error) {
	a := &Analysis{v: v, c: c, made: made, input: v.Reference.Inputs(toolchain.RoleModel)}
	if made.Quantize["method"] != plan.MethodStatic {
		return a, nil
	}
	fetched, err := calibration()
	a.input = append(a.input, fetched.Inputs(toolchain.RoleCalibration)...)
	return a, err
}

// Calibration fetches the cases that static quantization was calibrated with.
func Calibration(ctx context.Context, v Session) (run.Material, error) {
	dir, err := os.MkdirTemp(v.Scratch, "calibration-*")
	if err != nil {
		return run.Material{}, err
	}
	fetch := fetcher{v.Env, v.Environment, v.Release, v.Host, dir}
	repository, parts, err := fetch.sourceParts(ctx)
	if err != nil {
		return run.Material{}, err
	}
	ref, ok := parts[artifact.PartCalibration]
	if !ok {
		return run.Material{}, registry.Errorf(registry.CodeNotFound, "sources %s have no calibration", v.Release.Sources)
	}
	return fetch.material(ctx, repository, ref, "files")
}

func (a *Analysis) dir() (string, error) {
	return os.MkdirTemp(a.v.Scratch, "analysis-*")
}

// Quantize quantizes as the engine was, but for the options that are given.
func (a *Analysis) Quantize(ctx context.Context, other map[string]any,
	more ...toolchain.Input) (toolchain.Outcome, []toolchain.Input, error) {
	options := make(map[string]any, len(a.made.Quantize)+len(other))
	for _, set := range []map[string]any{a.made.Quantize, other} {
		for name, value := range set {
			options[name] = value
		}
	}
	dir, err := a.dir()
	if err != nil {
		return toolchain.Outcome{}, nil, err
	}
	job := toolchain.Job{Verb: toolchain.VerbQuantize,
		Inputs: slices.Concat(a.input, more), Options: options, Machine: run.Machine(a.v.Node)}
	outcome, err := a.v.Tools[run.OnnxRuntime].Quantizer.Do(ctx, job, filepath.Join(dir, "out"))
	if err != nil {
		return toolchain.Outcome{}, nil, err
	}
	model, err := run.ModelOf(outcome)
	return outcome, model, err
}

// propose finds the shortest list of the costliest nodes without which the engine keeps
// its limits, by bisection, and notes it as Exclude: none where none suffices, and with an error
// the shortest so far. A list of more than two thirds of the nodes is not tried.
func (a *Analysis) propose(ctx context.Context, s *Sensitivity) error {
	exclude := slices.Clone(run.Texts(a.made.Quantize["exclude_nodes"]))
	low := len(exclude) // so many are not enough
	most := max(low, (low+s.Of)*2/3)
	for _, n := range s.Nodes {
		if n.Costs() {
			exclude = append(exclude, n.Node)
		}
	}
	tooMany := len(exclude) > most
	exclude = exclude[:min(len(exclude), most)]
	for high := len(exclude) + 1; low+1 < high; {
		middle := (low + high) / 2
		keeps, err := a.keeps(ctx, exclude[:middle])
		if err != nil {
			return err
		}
		if keeps {
			high, s.Exclude = middle, exclude[:middle]
		} else {
			low = middle
		}
	}
	s.Unsuited = tooMany && s.Exclude == nil
	return nil
}

// keeps builds the engine without quantizing these nodes and judges it on all cases.
func (a *Analysis) keeps(ctx context.Context, exclude []string) (bool, error) {
	_, model, err := a.Quantize(ctx, map[string]any{"exclude_nodes": exclude})
	if registry.HasCode(err, registry.CodeInvalid) {
		return false, nil // nothing is left to quantize
	}
	if err != nil {
		return false, err
	}
	dir, err := a.dir()
	if err != nil {
		return false, err
	}
	compile := toolchain.Job{Verb: toolchain.VerbCompile,
		Inputs: model, Options: a.made.Compile, Machine: run.Machine(a.v.Node)}
	outcome, err := a.c.Tool.Engines.Do(ctx, compile, filepath.Join(dir, "engine"))
	if err != nil {
		return false, err
	}
	engine, err := run.LoadableOutput(a.c.Tool.Profile, "tried", outcome.Files)
	if err != nil {
		return false, err
	}
	execution := a.c.Tool.Run(toolchain.RunOptions{})
	execution.Job.Machine, execution.Job.Inputs = run.Machine(a.v.Node), a.v.Cases.Inputs(toolchain.RoleCases)
	execution.AddCandidate(run.Candidate{ID: "tried", Engine: a.c.Engine, Model: engine})
	if _, err := execution.Do(ctx, filepath.Join(dir, "run")); err != nil {
		return false, err
	}
	limits := a.v.Limits.Precisions[a.c.Engine.Precision].Outputs
	compared := comparison(a.v, limits, filepath.Join(dir, "run", "outputs", "tried"))
	fault := withScores(ctx, a.v, &compared)
	found, err := parity.Compare(ctx, compared)
	if err != nil {
		return false, err
	}
	judged := a.v.Limits.Judge(a.c.Engine.Precision, validators.Measured{Outputs: found.Outputs,
		Accuracy: found.Accuracy, Figures: found.Figures, Slices: found.Slices, Cases: found.Cases, AccuracyFault: fault})
	return judged.Verdict == evidence.VerdictPass, nil
}

// specQuantize says the driver's options for a target in the words of a spec.
func specQuantize(options map[string]any, target artifact.Target, exclude []string) spec.Quantize {
	q := spec.Quantize{Method: spec.MethodStatic, Exclude: exclude}
	if options["method"] == plan.MethodDynamic {
		q.Method = spec.MethodDynamic
	}
	if observer, ok := options["observer"].(string); ok && observer != spec.ObserverMinMax {
		q.Observer = observer
	}
	if percentile, ok := options["percentile"].(float64); ok {
		q.Percentile = spec.Fraction(percentile / 100)
	}
	if format, ok := options["format"].(string); ok {
		q.Format = format
	}
	q.PerChannel, _ = options["per_channel"].(bool)
	if reduce, ok := options["reduce_range"].(bool); ok && reduce != plan.Saturates(target) {
		q.ReduceRange = &reduce
	}
	q.Operators = run.Texts(options["op_types"])
	return q
}
