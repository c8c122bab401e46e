package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// crossCheck compares a sample of the golden outputs with what ONNX's reference evaluator computes
// from the same model and cases, and notes the result in golden. If the cases have expected values of all outputs, these are compared
// instead, and outputs that the framework of the source computed need no other. Where the evaluator cannot decide, golden is not
// cross-checked, with a warning. Errors: CodeLimit for outputs that it does not confirm, unless the
// spec accepts them.
func crossCheck(ctx context.Context, m Maker, to run.Reporter, golden *goldenset.Set) error {
	whole, err := checkExpected(ctx, m, golden)
	if err = accepted(m, golden, err); err != nil || whole {
		return err
	}
	c := &golden.CrossCheck // with the checks of some outputs, if these are expected
	c.By, c.Cases, c.Of, c.Reason = goldenset.EvaluatorName, 0, golden.Set.Count, ""
	if f := m.Inputs.Imported.Framework; f.Driver != nil {
		c.By, c.Cases, c.Reason = "source framework, "+f.Name+" "+m.Inputs.Imported.Identity.Version, golden.Set.Count, "they are its own outputs"
		return nil
	}
	if err := evaluate(ctx, m, to, golden); err != nil {
		return err
	}
	if c.Cases == 0 && m.Tools[run.OnnxRuntime].Evaluator != nil {
		golden.Warnings = append(golden.Warnings, "no one but ONNX Runtime says what the reference computes: "+c.String())
	}
	if c.Worst == nil || !(c.Worst.Share > 1) {
		return nil
	}
	return accepted(m, golden, unconfirmed(*c))
}

// accepted returns an error about golden outputs that are not confirmed, unless the spec accepts them.
func accepted(m Maker, golden *goldenset.Set, err error) error {
	if m.Inputs.Accepted == "" || !registry.HasCode(err, registry.CodeLimit) {
		return err
	}
	golden.CrossCheck.Accepted = m.Inputs.Accepted
	golden.Warnings = append(golden.Warnings, fmt.Sprintf("%v; the spec accepts it: %q", err, m.Inputs.Accepted))
	return nil
}

// unconfirmed is the error about golden outputs that the evaluator does not confirm.
func unconfirmed(c evidence.CrossCheck) error {
	w := c.Worst
	said := fmt.Sprintf("output %q%v of case %d is %v by ONNX Runtime and %v by the %s, %.3g times the tolerance apart",
		w.Output, w.Index, w.Case, float64(w.Golden), float64(w.Evaluator), c.By, float64(w.Share))
	if w.Index == nil {
		said = fmt.Sprintf("output %q by ONNX Runtime and by the %s: %s", w.Output, c.By, c.Reason)
	}
	return registry.WithHint(registry.Errorf(registry.CodeLimit, "cross-check the reference: %s", said),
		`one of the two does not compute what ONNX defines: export the model with other operators or another opset, or accept what ONNX Runtime computes: reference: {accept: "your reason"}`)
}

// evaluate runs the evaluator on a sample and compares what it left. A failure of the evaluator
// leaves golden without a cross-check. Errors: those of ctx, and of files.
func evaluate(ctx context.Context, m Maker, to run.Reporter, golden *goldenset.Set) error {
	c := &golden.CrossCheck
	driver := m.Tools[run.OnnxRuntime].Evaluator
	if driver == nil {
		c.Reason = "there is no " + c.By + " here"
		return nil
	}
	if size := run.SizeOf(m.Inputs.Imported.Source.Files); size >= m.crossCheckBelow {
		c.Reason = fmt.Sprintf("the model has %d bytes, and the %s is for less than %d", size, c.By, m.crossCheckBelow)
		return nil
	}
	sample, job, err := crossCheckJob(m)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(m.Scratch, "cross-check-*")
	if err != nil {
		return err
	}
	ctx, done := to.StepIn(ctx, "cross-check the reference")
	outcome, err := driver.Do(ctx, job, filepath.Join(dir, "out"))
	switch {
	case ctx.Err() != nil:
		done("", context.Canceled)
		return err
	case err != nil:
		c.Reason = err.Error()
		done("not cross-checked", nil)
		return nil //nolint:nilerr // that the evaluator fails is no fault of the model; the reason is recorded
	}
	golden.CrossChecking = run.Step{Name: "cross-check the reference", Options: job.Options, Outcome: outcome, Driver: driver, Job: job}
	err = golden.Compare(outcome, sample, toleranceOf(m))
	note := c.String()
	if outcome.Cached {
		note = run.CachedNote(outcome.Origin) + ", " + note
	}
	done(note, err, outcome.Enforced.String())
	return err
}

// crossCheckJob is the run of the evaluator: the model as it was given, and each case of the sample
// in a file of its own, so that names tell which were run.
func crossCheckJob(m Maker) (sample []int, job toolchain.Job, err error) {
	source := m.Inputs.Imported.Source
	budget := m.Budgets[run.OnnxRuntime]
	seconds := goldenset.EvaluatorTime
	if budget.Time > 0 {
		seconds = min(seconds, budget.Time/2)
	} else {
		budget.Time = goldenset.EvaluatorKill
	}
	job = toolchain.Job{Verb: toolchain.VerbRun, Machine: run.Machine(m.Node), Inputs: slices.Clone(source.Files), Budget: budget,
		Options: map[string]any{"seconds": seconds.Seconds()},
		Run:     &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: run.ReferenceID, Path: source.Files[0].Name}}}}
	set := m.Inputs.Cases
	sample = goldenset.Sample(set.Record.Count, goldenset.SampleSize(run.SizeOf(set.Files), set.Record.Count))
	dir, err := os.MkdirTemp(m.Scratch, "cross-check-cases-*")
	if err != nil {
		return nil, toolchain.Job{}, err
	}
	var files []string
	for _, f := range set.Files {
		files = append(files, f.Path)
	}
	inputs, err := goldenset.CaseFiles(sample, set.Record.Shards, files, dir)
	job.Inputs = append(job.Inputs, inputs...)
	return sample, job, err
}

// toleranceOf is that for the source.
func toleranceOf(m Maker) goldenset.Tolerance {
	return goldenset.ToleranceOf(m.Inputs.Quantized != "", m.Inputs.Imported.Source.Model)
}
