package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/divergence"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// How many inner tensors are asked for at a time: so many, and so many bytes of them for each case, as far as
// their shapes are known.
const (
	chunkTensors = 48
	chunkBytes   = 64 << 20
	openSize     = 64 // what a dimension of unknown size counts as
)

// caseInput is a case in a file of its own.
type caseInput struct {
	number int
	input  toolchain.Input
}

func caseFile(number int, file string) (caseInput, error) {
	in, err := toolchain.FileInput(toolchain.RoleCases, caseName(number), file)
	return caseInput{number, in}, err
}

func leftPad(number int) string { return fmt.Sprintf("%07d", number) }

// bisector compares the inner tensors of an engine with those of the reference model.
type bisector struct {
	v     verify.Session
	c     run.Candidate
	made  run.Recipe
	known bool // made is
	cases []caseInput

	graph   divergence.Graph // of the reference model
	inner   map[string]innerValue
	wanted  []string // values that the engine may have too, in the order of the graph
	outputs map[string]*summed
	sums    map[string]*summed

	madeAgain bool
	refined   []string          // tensors that were measured like that although madeAgain is false
	compiled  []toolchain.Input // the model that is compiled again
	turns     bool              // the runtime may have the channels last
	problems  []string
	runs      int
}

// innerValue is what the importer says of a tensor of a graph.
type innerValue struct {
	divergence.Value
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"` // nil if unknown
}

// comparable reports whether drivers can give the tensor as an output.
func (i innerValue) comparable() bool {
	return slices.Contains([]string{"", "float", "float16", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
		"bool"}, i.DType)
}

// bytes is about what the tensor takes for a case.
func (i innerValue) bytes() int64 {
	n := int64(8)
	for _, size := range i.Shape {
		if size < 0 {
			size = openSize
		}
		if size > 0 && n < 1<<50/size {
			n *= size
		}
	}
	return n
}

// prepare reads the graphs, and runs the engine as it is.
func (b *bisector) prepare(ctx context.Context, numbers []int) (err error) {
	done := b.v.Env.Step("read the graphs of " + b.c.Engine.Label() + " and the reference model")
	defer func() { done("", err) }()
	if b.cases, err = caseInputs(b.v, numbers, filepath.Join(b.v.Scratch, "one-by-one")); err != nil {
		return err
	}
	values, outputs, err := b.values(ctx, b.v.ReferenceModel)
	if err != nil {
		return err
	}
	b.graph.Outputs, b.inner = outputs, make(map[string]innerValue, len(values))
	for _, value := range values {
		b.graph.Values, b.inner[value.Name] = append(b.graph.Values, value.Value), value
	}
	has, err := b.engineValues(ctx)
	if err != nil {
		return err
	}
	for _, value := range values {
		if value.comparable() && has[value.Name] {
			b.wanted = append(b.wanted, value.Name)
		}
	}
	b.outputs = make(map[string]*summed)
	return b.compare(ctx, b.c.Model, b.v.ReferenceModel, outputs, b.outputs)
}

// engineValues are the tensors that an engine has: of its own file, if that is a graph of ONNX that keeps the names of
// tensors. Otherwise they are those of the model that it was compiled of.
func (b *bisector) engineValues(ctx context.Context) (map[string]bool, error) {
	var own map[string]bool
	if b.profile().Format == run.OnnxFormat {
		values, _, err := b.values(ctx, b.c.Model)
		if err != nil {
			return nil, err
		}
		own = namesOf(values)
		if b.keepsNames(own) || !b.known {
			return own, nil
		}
	}
	b.madeAgain, b.turns = true, b.profile().ChannelsLast
	return b.sourceValues(ctx)
}

// fewNames is the part of the inner tensors of the reference model from which on an engine counts as keeping names.
const fewNames = 0.2

// keepsNames reports whether tensors of an engine have names of the reference model's, beside the outputs. Without
// inner tensors in the reference model there is nothing to keep.
func (b *bisector) keepsNames(own map[string]bool) bool {
	inner, kept := 0, 0
	for _, value := range b.graph.Values {
		if !slices.Contains(b.graph.Outputs, value.Name) {
			inner++
			if own[value.Name] {
				kept++
			}
		}
	}
	return inner == 0 || kept > 0 && float64(kept) >= fewNames*float64(inner)
}

// sourceValues are the tensors of the model that the engine was compiled of.
func (b *bisector) sourceValues(ctx context.Context) (map[string]bool, error) {
	if !b.known {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: no trusted builder's provenance says how it was made, which it takes to compile it again with inner tensors as outputs", b.c.Engine.Label())
	}
	compiled, err := b.source(ctx)
	if err != nil {
		return nil, err
	}
	b.compiled = compiled
	values, _, err := b.values(ctx, graphOf(compiled))
	return namesOf(values), err
}

// refine compares tensors that the engine itself does not have, in the model that it was compiled of.
func (b *bisector) refine(ctx context.Context, between []string) error {
	if b.madeAgain || !b.known || len(between) == 0 {
		return nil
	}
	has, err := b.sourceValues(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range between {
		if has[name] && b.inner[name].comparable() && len(names) < chunkTensors {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	b.madeAgain = true
	err = b.chunk(ctx, names)
	b.madeAgain = false
	for _, name := range names {
		if b.sums[name] != nil {
			b.refined = append(b.refined, name)
		}
	}
	return err
}

func namesOf(values []innerValue) map[string]bool {
	names := make(map[string]bool, len(values))
	for _, v := range values {
		names[v.Name] = true
	}
	return names
}

// profile is that of the form that the engine has.
func (b *bisector) profile() toolchain.Profile {
	if of, ok := b.c.Tool.Profile.Entries()[path.Base(b.c.Model.Entry)]; ok {
		return of
	}
	return b.c.Tool.Profile
}

// source is the model that the compiler was given: the reference model, quantized as it was for the engine.
func (b *bisector) source(ctx context.Context) ([]toolchain.Input, error) {
	in := plan.Inputs{Model: b.v.Reference.Inputs(toolchain.RoleModel)}
	if b.made.Quantizer == nil {
		return in.Model, nil
	}
	if err := b.v.Tools.Open(ctx, b.v.Env, b.made.Quantizer.Name); err != nil {
		return nil, err
	}
	_, tolerant := b.made.Quantize["atol"]
	if tolerant || b.made.Quantize["method"] == plan.MethodStatic {
		calibration, err := verify.Calibration(ctx, b.v)
		if err != nil {
			return nil, err
		}
		in.Calibration.Files = calibration.Inputs(toolchain.RoleCalibration)
	}
	in.Cases.Files = b.v.Cases.Inputs(toolchain.RoleCases)
	job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: in.ForQuantizer(b.made.Quantize), Options: b.made.Quantize, Machine: run.Machine(b.v.Node)}
	outcome, err := b.v.Tools[b.made.Quantizer.Name].Quantizer.Do(ctx, job, b.dir("quantized"))
	if err != nil {
		return nil, err
	}
	return run.ModelOf(outcome)
}

// graphOf finds the graph among the files of a model in ONNX, the others of which are external data.
func graphOf(model []toolchain.Input) run.Loadable {
	i := slices.IndexFunc(model, func(in toolchain.Input) bool { return path.Ext(in.Name) == ".onnx" })
	return run.Loadable{Entry: model[max(i, 0)].Name, Inputs: model}
}

// values lists the tensors and outputs of a graph.
func (b *bisector) values(ctx context.Context, model run.Loadable) ([]innerValue, []string, error) {
	outcome, err := b.importer(ctx, model, map[string]any{"inner": true})
	if err != nil {
		return nil, nil, err
	}
	var said struct {
		Values  []innerValue `json:"values"`
		Outputs []string     `json:"outputs"`
	}
	if err := json.Unmarshal(outcome.Result, &said); err != nil {
		return nil, nil, registry.Errorf(registry.CodeInternal, "result of import: %w", err)
	}
	return said.Values, said.Outputs, nil
}

// importer has the driver of ONNX Runtime read the graph of a model.
func (b *bisector) importer(ctx context.Context, model run.Loadable, options map[string]any) (toolchain.Outcome, error) {
	i := slices.IndexFunc(model.Inputs, func(in toolchain.Input) bool { return in.Role == toolchain.RoleModel && in.Name == model.Entry })
	if i < 0 {
		return toolchain.Outcome{}, registry.Errorf(registry.CodeInternal, "no input %s", model.Entry)
	}
	return b.v.Tools[run.OnnxRuntime].Importer.Do(ctx, toolchain.Job{Verb: toolchain.VerbImport, Inputs: model.Inputs[i : i+1], Options: options,
		Machine: run.Machine(b.v.Node)}, b.dir("graph"))
}

// dir names a folder that is not there yet.
func (b *bisector) dir(what string) string {
	b.runs++
	return filepath.Join(b.v.Scratch, fmt.Sprintf("%s-%d", what, b.runs))
}

// exposed is a model with inner tensors as outputs.
func (b *bisector) exposed(ctx context.Context, model run.Loadable, names []string) (run.Loadable, error) {
	outcome, err := b.importer(ctx, model, map[string]any{"expose": names})
	if err != nil {
		return run.Loadable{}, err
	}
	file, ok := outcome.File(run.ModelFile)
	if !ok {
		return run.Loadable{}, registry.Errorf(registry.CodeInternal, "the importer left no %s", run.ModelFile)
	}
	model.Inputs = slices.Clone(model.Inputs)
	for i, in := range model.Inputs {
		if in.Name == model.Entry && in.Role == toolchain.RoleModel {
			model.Inputs[i] = toolchain.Input{Role: in.Role, Name: in.Name, Path: file.Path, Digest: file.Digest, Size: file.Size}
		}
	}
	return model, nil
}

// exposedEngine is the engine with inner tensors as outputs, compiled again if it has to be.
func (b *bisector) exposedEngine(ctx context.Context, names []string) (run.Loadable, error) {
	if !b.madeAgain {
		return b.exposed(ctx, b.c.Model, names)
	}
	source, err := b.exposed(ctx, graphOf(b.compiled), names)
	if err != nil {
		return run.Loadable{}, err
	}
	profile := b.profile()
	calibration, err := b.compilerCalibration(ctx)
	if err != nil {
		return run.Loadable{}, err
	}
	source.Inputs = append(source.Inputs, calibration...)
	outcome, err := b.c.Tool.Engines.Do(ctx, toolchain.Job{Verb: toolchain.VerbCompile, Inputs: source.Inputs, Options: b.made.Compile,
		Machine: run.Machine(b.v.Node)}, b.dir("compiled"))
	if err != nil {
		return run.Loadable{}, err
	}
	made, err := run.LoadableOutput(profile, b.c.ID, outcome.Files)
	made.Alone = profile.Alone
	return made, err
}

// compilerCalibration is what a compiler gets that quantizes by itself; nil for others.
func (b *bisector) compilerCalibration(ctx context.Context) ([]toolchain.Input, error) {
	form, _ := b.made.Compile["form"].(string)
	profile, err := b.c.Tool.Profile.In(form)
	if err != nil || !profile.Calibrated {
		return nil, err
	}
	calibration, err := verify.Calibration(ctx, b.v)
	return calibration.Inputs(toolchain.RoleCalibration), err
}

// scan compares all tensors, a chunk at a time. What fails is tried again in halves, so that one tensor that a
// runtime does not give hides no other.
func (b *bisector) scan(ctx context.Context) (err error) {
	ctx, done := b.v.Env.Report().StepIn(ctx, fmt.Sprintf("compare %s on %s", registry.Count(len(b.wanted), "tensor"),
		registry.Count(len(b.cases), "case")))
	defer func() { done("", err) }()
	for _, chunk := range b.chunks() {
		if err := b.chunk(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// chunks divides the tensors that are compared.
func (b *bisector) chunks() [][]string {
	var chunks [][]string
	var size int64
	for _, name := range b.wanted {
		last := len(chunks) - 1
		bytes := b.inner[name].bytes()
		if last < 0 || len(chunks[last]) == chunkTensors || size+bytes > chunkBytes {
			chunks, size = append(chunks, nil), 0
			last++
		}
		chunks[last], size = append(chunks[last], name), size+bytes
	}
	return chunks
}

func (b *bisector) chunk(ctx context.Context, names []string) error {
	err := b.compareInner(ctx, names)
	if err == nil || ctx.Err() != nil {
		return err
	}
	for _, name := range names {
		delete(b.sums, name) // of a comparison that broke off
	}
	if len(names) == 1 {
		b.problem("%s: %s", names[0], registry.PlainText(err.Error()))
		return nil
	}
	if err := b.chunk(ctx, names[:len(names)/2]); err != nil {
		return err
	}
	return b.chunk(ctx, names[len(names)/2:])
}

// maxProblems is how many tensors that could not be compared are named.
const maxProblems = 8

func (b *bisector) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(b.problems) < maxProblems && !slices.Contains(b.problems, text) {
		b.problems = append(b.problems, text)
	}
}

func (b *bisector) compareInner(ctx context.Context, names []string) error {
	reference, err := b.exposed(ctx, b.v.ReferenceModel, names)
	if err != nil {
		return err
	}
	engine, err := b.exposedEngine(ctx, names)
	if err != nil {
		return err
	}
	return b.compare(ctx, engine, reference, names, b.sums)
}

// compare runs an engine and a reference model, and adds up how far these tensors are from each other.
func (b *bisector) compare(ctx context.Context, engine, reference run.Loadable, names []string, sums map[string]*summed) error {
	wants, err := b.runReference(ctx, reference, names)
	if err != nil {
		return err
	}
	gots, err := b.runEngine(ctx, engine, names)
	if err != nil {
		return err
	}
	for _, c := range b.cases {
		if err := b.addCase(c.number, filepath.Join(wants, c.input.Name), filepath.Join(gots, c.input.Name), names, sums); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(wants), os.RemoveAll(gots))
}

func (b *bisector) inputs() []toolchain.Input {
	var all []toolchain.Input
	for _, c := range b.cases {
		all = append(all, c.input)
	}
	return all
}

// runReference gives the folder with the outputs of a fixed run, as golden outputs are made.
func (b *bisector) runReference(ctx context.Context, model run.Loadable, names []string) (string, error) {
	tool := b.v.Tools[run.OnnxRuntime]
	execution := tool.Run(toolchain.RunOptions{SelectOutputs: names, Threads: run.RunThreads, Level: tool.Profile.Level})
	execution.Job.Inputs = slices.Concat(model.Inputs, b.inputs())
	execution.Job.Machine = run.Machine(b.v.Node)
	execution.Job.Run.Engines = []toolchain.RunEngine{{ID: run.ReferenceID, Path: model.Entry, Operators: model.Operators}}
	dir := b.dir("reference-run")
	_, err := execution.Do(ctx, dir)
	return filepath.Join(dir, "outputs", run.ReferenceID), err
}

func (b *bisector) runEngine(ctx context.Context, model run.Loadable, names []string) (string, error) {
	execution := b.c.Tool.Run(toolchain.RunOptions{SelectOutputs: names})
	execution.Job.Inputs, execution.Job.Machine = b.inputs(), run.Machine(b.v.Node)
	c := b.c
	c.Model = model
	execution.AddCandidate(c)
	dir := b.dir("engine-run")
	_, err := execution.Do(ctx, dir)
	return filepath.Join(dir, "outputs", c.ID), err
}

// addCase adds a case, one tensor at a time.
func (b *bisector) addCase(number int, want, got string, names []string, sums map[string]*summed) (err error) {
	reference, err := tensorfile.Open(want, tensorfile.Limits{})
	if err != nil {
		return cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	engine, err := tensorfile.Open(got, tensorfile.Limits{})
	if err != nil {
		return cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	for _, name := range names {
		w, err := whole(reference, name)
		if err != nil {
			return cases.TensorError(err)
		}
		g, err := whole(engine, name)
		if err != nil {
			return cases.TensorError(err)
		}
		if sums[name] == nil {
			sums[name] = newSummed()
		}
		if err := sums[name].add(number, w, g, b.turns); err != nil {
			if in := new(tensor.CaseError); errors.As(err, &in) {
				err = in.Err // its shapes differ in every case
			}
			b.problem("%s: %v", name, err)
			sums[name].broken = true
		}
	}
	for name, sum := range sums {
		if sum.broken {
			delete(sums, name)
		}
	}
	return nil
}

// whole reads a tensor of a file that has one case.
func whole(f *tensorfile.File, name string) (tensor.Tensor, error) { return f.Rows(name, 0, 1) }
