package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// beyondHalf warns of golden outputs that float16 does not hold, if a planned engine computes in it: it has infinity there.
func beyondHalf(m Maker, g goldenset.Set) (warnings []string, err error) {
	i := slices.IndexFunc(m.Plan.Engines, func(e plan.Engine) bool {
		numbers, _ := artifact.NumberFormat(e.Precision)
		return numbers == validators.PrecisionFP16
	})
	if i < 0 {
		return nil, nil
	}
	for _, output := range m.Inputs.Interface.Outputs {
		if output.DType.Class() != tensor.ClassFloat {
			continue
		}
		values, err := g.RangeOf(output.Name)
		if err != nil {
			return nil, err
		}
		if largest := max(-values.Low, values.High); values.Low <= values.High && largest > goldenset.LargestHalf {
			maker := makerOf(m.Inputs.Imported.Model, output.Name)
			if maker != "" && slices.Contains(run.Texts(m.Plan.Engines[i].Quantize["exclude_nodes"]), maker) {
				continue // it stays in float32
			}
			warnings = append(warnings, fmt.Sprintf("variant %s: output %q reaches %s, float16 ends at 65504: scale what the model predicts, or keep the nodes with such numbers "+
				"in float32: quantize: {method: fp16, exclude: [%s]} (mlpromote bisect names all of them)",
				m.Plan.Engines[i].Variant, output.Name, goldenset.Short(largest), cmp.Or(registry.PlainText(maker), "NODE, ...")))
		}
	}
	return warnings, nil
}

// makerOf is the node that makes an output of a graph; empty if it has no name.
func makerOf(model *onnx.Model, output string) string {
	if model == nil {
		return ""
	}
	return model.ProducerNames[output]
}

// guessedScores warns of outputs that are guessed to be scores by their shape alone, and whose columns have very different
// spreads, as quantities with units of their own do. Errors of scores are relative to the spread of all columns, which hides
// errors of the small ones.
func guessedScores(m Maker, golden goldenset.Set) ([]string, error) {
	var warnings []string
	for _, output := range m.Inputs.Interface.Outputs {
		why := m.Plan.Guessed[output.Name]
		if why != validators.GuessedRow || output.Kind != validators.KindScores {
			continue
		}
		least, most, err := golden.SpreadsOf(output.Name)
		if err != nil {
			return nil, err
		}
		if most > goldenset.Unlike*least {
			warnings = append(warnings, fmt.Sprintf("output %q is guessed to be scores (%s), and its columns have spreads from %.3g to %.3g: "+
				"if they are quantities, write outputs: {%s: {kind: value}}, and else kind: scores", output.Name, why, least, most, output.Name))
		}
	}
	return warnings, nil
}

// roundedProbability is how far a probability may be beyond 0 and 1 by rounding, in the coarsest type of an output, bfloat16.
const roundedProbability = 1.0 / 128

// checkProbabilities checks that outputs that are probabilities are some: limits on other quantities are stricter. Errors: CodeInvalid.
func checkProbabilities(m Maker, golden goldenset.Set) error {
	for _, output := range m.Inputs.Interface.Outputs {
		if output.Kind != validators.KindProbability {
			continue
		}
		values, err := golden.RangeOf(output.Name)
		if err != nil {
			return err
		}
		if values.Low < -roundedProbability || values.High > 1+roundedProbability {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "output %q is of kind %s, and the reference model returns %.3g to %.3g for it, want 0 to 1",
				output.Name, output.Kind, values.Low, values.High),
				"write its kind into the spec: outputs: {%s: {kind: value}}, or scores for logits of classes", output.Name)
		}
	}
	return nil
}

// checkDetections checks that outputs of kind detections have boxes with corners and classes: nothing else overlaps. Errors: CodeInvalid.
func checkDetections(m Maker, golden goldenset.Set) error {
	of, ok, err := m.Inputs.Interface.Detections()
	if err != nil || !ok {
		return err
	}
	var boxes accuracy.Boxes
	for i, file := range golden.Files {
		if err := addBoxes(&boxes, of, file.Path, golden.Set.Shards[i].Count); err != nil {
			return notDetections(of, err.Error())
		}
	}
	if !boxes.AreCorners() {
		return notDetections(of, "boxes have no area: want corners x1, y1, x2, y2")
	}
	return nil
}

func notDetections(of accuracy.DetectionOutputs, why string) error {
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "outputs %s of the reference model are no detections: %s", strings.Join(of.Names(), ", "), why),
		"write another kind into the spec: outputs: {%s: {kind: boxes}}, or convert the boxes in the graph", of.Names()[0])
}

func addBoxes(boxes *accuracy.Boxes, of accuracy.DetectionOutputs, path string, count int) (err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for row := range int64(count) {
		detections, err := of.Rows(f, row, row+1)
		if err != nil {
			return err
		}
		if err := boxes.Add(detections.Float64s()); err != nil {
			return err
		}
	}
	return nil
}

// provingAnswers is from how many cases on with another answer than most the loss of that answer is proven: see validators.
const provingAnswers = 5

// oneAnswer warns of outputs with answers that are the same in all cases but a few: an engine that always gives them passes.
func oneAnswer(m Maker, golden goldenset.Set) (warnings []string, err error) {
	for _, output := range m.Inputs.Interface.Outputs {
		limits, err := validators.DefaultLimits(validators.PrecisionFP32, output, golden.Set.Count)
		if err != nil {
			return warnings, err
		}
		if limits.Equal == nil || golden.Set.Count < 2 {
			continue
		}
		others, err := golden.OtherRows(output.Name)
		if err != nil {
			return warnings, cases.TensorError(err)
		}
		if others == 0 || others < provingAnswers && golden.Set.Count >= 4*provingAnswers {
			warnings = append(warnings, fmt.Sprintf("output %q has the same answer in %d of %d cases: an engine that always gives it can pass: "+
				"add cases with other answers", output.Name, golden.Set.Count-others, golden.Set.Count))
		}
	}
	return warnings, nil
}

// referenceRun is how the outputs are made that engines are compared with: by the
// framework of the source, on the source, so that a conversion is compared with the rest.
func referenceRun(m Maker) (driver toolchain.Driver, job toolchain.Job, kind, version string) {
	from := m.Inputs.Imported
	job = toolchain.Job{Verb: toolchain.VerbRun, Machine: run.Machine(m.Node), Run: &toolchain.RunOptions{
		Engines: []toolchain.RunEngine{{ID: run.ReferenceID, Path: from.Source.Files[0].Name}}, Threads: run.RunThreads,
	}}
	job.Inputs = slices.Concat(from.Source.Files, from.Source.Operators, m.Inputs.Cases.Files)
	for _, library := range from.Source.Operators {
		job.Run.Engines[0].Operators = append(job.Run.Engines[0].Operators, library.Name)
	}
	if f := from.Framework; f.Driver != nil {
		job.Options = from.Plan.Options
		return f.Driver, job, f.Name + "/" + from.Identity.Version, from.Identity.Version
	}
	reference := m.Tools[run.OnnxRuntime]
	job.Run.Level = reference.Profile.Level
	return reference.Engines, job, run.OnnxRuntime + "/" + reference.Profile.Level, reference.Identity.Version
}

// RunReference runs the reference on the cases. With an error it returns the warnings so far.
func RunReference(ctx context.Context, m Maker, to run.Reporter) (goldenset.Set, error) {
	driver, job, kind, version := referenceRun(m)
	step, err := m.Do(ctx, to, driver, run.Task{Name: "run the reference", Job: job, Options: job.Options})
	if err != nil {
		return goldenset.Set{}, m.Inputs.Cases.NamedIn(err)
	}
	result, err := step.Outcome.RunResult(*job.Run)
	if err != nil {
		return goldenset.Set{}, registry.Errorf(registry.CodeOf(err), "run the reference: %s: %w", kind, err)
	}
	golden := goldenset.Set{Step: step, Set: m.Inputs.Cases.Record, Latency: performance.Summarize(result.Engines[0].TimingsNS, 1)}
	golden.Set.Labels, golden.Set.Origin = "", ""
	golden.Set.Kind, golden.Set.Runtime = kind, version
	golden.Set.Node = &artifact.Node{V: m.Node.V, OS: m.Node.OS, CPU: m.Node.CPU}
	for _, shard := range golden.Set.Shards {
		file, ok := step.Outcome.File("outputs/" + run.ReferenceID + "/" + shard.File)
		if !ok {
			return goldenset.Set{}, registry.Errorf(registry.CodeInternal, "run the reference: no outputs for shard %s", shard.File)
		}
		golden.Files = append(golden.Files, file)
	}
	if golden.Warnings, err = golden.Check(m.Inputs.Interface.Outputs); err != nil {
		return golden, err
	}
	if err := errors.Join(checkProbabilities(m, golden), checkDetections(m, golden)); err != nil {
		return golden, err
	}
	for _, look := range []func() ([]string, error){
		func() ([]string, error) { return guessedScores(m, golden) },
		func() ([]string, error) { return oneAnswer(m, golden) },
		func() ([]string, error) { return beyondHalf(m, golden) },
	} {
		found, err := look()
		if golden.Warnings = append(golden.Warnings, found...); err != nil {
			return golden, err
		}
	}
	golden.LabelWarnings, err = checkLabels(m, golden)
	golden.Warnings = append(golden.Warnings, golden.LabelWarnings...)
	return golden, err
}
