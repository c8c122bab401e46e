package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Bounds of cross-checking the golden outputs.
const (
	crossCheckTime  = 60 * time.Second   // of all cases; the driver stops between two of them
	crossCheckKill  = 3 * crossCheckTime // when the driver is ended, if one operator takes that long
	crossCheckCases = 64
	crossCheckBytes = 64 << 20 // of the inputs of all cross-checked cases but the first
	// crossCheckModel is the size in bytes from which models are not evaluated: one case in numpy
	// takes minutes, and the evaluator holds the weights several times.
	crossCheckModel = 1 << 30
)

// evaluatorName is what provenance and messages call ONNX's evaluator.
const evaluatorName = "onnx reference evaluator"

// evaluatorResult is the Result of a run by ONNX's evaluator.
type evaluatorResult struct {
	toolchain.RunResult
	Evaluator string   `json:"evaluator"` // version of ONNX
	Missing   []string `json:"missing"`   // operators that it lacks
	Reason    string   `json:"reason"`    // why it did not run all cases
}

// crossCheck compares a sample of the golden outputs with what ONNX's reference evaluator computes
// from the same model and cases, and notes the result in golden. Outputs that the framework of
// the source computed need no other. Where the evaluator cannot decide, golden is not
// cross-checked, with a warning. Errors: CodeLimit for outputs that it does not confirm, unless the
// spec accepts them.
func (m maker) crossCheck(ctx context.Context, to reporter, golden *goldenSet) error {
	golden.crossCheck = registry.CrossCheck{By: evaluatorName, Of: golden.set.Count}
	c := &golden.crossCheck
	if f := m.inputs.imported.framework; f.driver != nil {
		c.By, c.Cases, c.Reason = "source framework, "+f.name+" "+m.inputs.imported.identity.Version, golden.set.Count, "they are its own outputs"
		return nil
	}
	if err := m.evaluate(ctx, to, golden); err != nil {
		return err
	}
	if c.Cases == 0 && m.tools[onnxRuntime].Evaluator != nil {
		golden.warnings = append(golden.warnings, "no one but ONNX Runtime says what the reference computes: "+c.String())
	}
	if c.Worst == nil || !(c.Worst.Share > 1) {
		return nil
	}
	err := unconfirmed(*c)
	if m.inputs.accepted == "" {
		return err
	}
	c.Accepted = m.inputs.accepted
	golden.warnings = append(golden.warnings, fmt.Sprintf("%v; the spec accepts it: %q", err, c.Accepted))
	return nil
}

// unconfirmed is the error about golden outputs that the evaluator does not confirm.
func unconfirmed(c registry.CrossCheck) error {
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
func (m maker) evaluate(ctx context.Context, to reporter, golden *goldenSet) error {
	c := &golden.crossCheck
	driver := m.tools[onnxRuntime].Evaluator
	if driver == nil {
		c.Reason = "there is no " + c.By + " here"
		return nil
	}
	if size := sizeOfInputs(m.inputs.imported.source.files); size >= m.crossCheckBelow {
		c.Reason = fmt.Sprintf("the model has %d bytes, and the %s is for less than %d", size, c.By, m.crossCheckBelow)
		return nil
	}
	sample, job, err := m.crossCheckJob()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(m.scratch, "cross-check-*")
	if err != nil {
		return err
	}
	ctx, done := to.stepIn(ctx, "cross-check the reference")
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
	golden.crossChecking = takenStep{name: "cross-check the reference", options: job.Options, outcome: outcome, driver: driver, job: job}
	err = golden.compare(outcome, sample, m.tolerance())
	note := c.String()
	if outcome.Cached {
		note = remembered(outcome.Origin) + ", " + note
	}
	done(note, err, outcome.Enforced.String())
	return err
}

// crossCheckJob is the run of the evaluator: the model as it was given, and each case of the sample
// in a file of its own, so that names tell which were run.
func (m maker) crossCheckJob() (sample []int, job toolchain.Job, err error) {
	source := m.inputs.imported.source
	budget := m.budgets[onnxRuntime]
	seconds := crossCheckTime
	if budget.Time > 0 {
		seconds = min(seconds, budget.Time/2)
	} else {
		budget.Time = crossCheckKill
	}
	job = toolchain.Job{Verb: toolchain.VerbRun, Machine: machine(m.node), Inputs: slices.Clone(source.files), Budget: budget,
		Options: map[string]any{"seconds": seconds.Seconds()},
		Run:     &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: referenceID, Path: source.files[0].Name}}}}
	set := m.inputs.Cases
	sample = sampleOf(set.Record.Count, crossCheckCount(sizeOfInputs(set.Files), set.Record.Count))
	dir, err := os.MkdirTemp(m.scratch, "cross-check-cases-*")
	if err != nil {
		return nil, toolchain.Job{}, err
	}
	var files []string
	for _, f := range set.Files {
		files = append(files, f.Path)
	}
	inputs, err := eachCase(sample, set.Record.Shards, files, dir)
	job.Inputs = append(job.Inputs, inputs...)
	return sample, job, err
}

// eachCase writes each case of a sample to a file of its own in dir. files are those of the shards.
func eachCase(sample []int, shards []registry.Shard, files []string, dir string) ([]toolchain.Input, error) {
	var inputs []toolchain.Input
	for i, number := range sample {
		shard := shardOf(shards, number)
		row := int64(number - shards[shard].First)
		to := filepath.Join(dir, crossCheckFile(i))
		if err := writeRows(to, []rowsOf{{files[shard], row, row + 1, int64(shards[shard].Count)}}); err != nil {
			return nil, err
		}
		in, err := toolchain.FileInput(toolchain.RoleCases, crossCheckFile(i), to)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// crossCheckFile names the file of the i-th case of the sample.
func crossCheckFile(i int) string { return fmt.Sprintf("case-%05d.safetensors", i) }

// crossCheckCount is how many of count cases of size bytes together are in the sample: at least
// one.
func crossCheckCount(size int64, count int) int {
	return max(1, min(count, crossCheckCases, int(crossCheckBytes/max(size/int64(max(count, 1)), 1))))
}

// sampleOf lists n of the numbers [0, count), each once, so that every first part of the list is
// spread over all: multiples of the golden ratio, modulo 1. It is the same list every time.
func sampleOf(count, n int) []int {
	taken := make(map[int]bool, n)
	var list []int
	for i := 0; len(list) < min(n, count); i++ {
		_, at := math.Modf(0.5 + float64(i)*math.Phi)
		number := min(int(at*float64(count)), count-1)
		if !taken[number] {
			taken[number] = true
			list = append(list, number)
		}
	}
	return list
}

// shardOf finds the shard of a case.
func shardOf(shards []registry.Shard, number int) int {
	return slices.IndexFunc(shards, func(s registry.Shard) bool { return number < s.First+s.Count })
}

// readEvaluatorResult reads what the evaluator says of its run. Errors: CodeInternal.
func readEvaluatorResult(o toolchain.Outcome, sample int) (evaluatorResult, error) {
	var r evaluatorResult
	err := json.Unmarshal(o.Result, &r)
	if err == nil && (r.Cases < 0 || r.Cases > sample) {
		err = errors.New("it has more cases than it was given")
	}
	if err != nil {
		return r, registry.Errorf(registry.CodeInternal, "result of the %s: %w", evaluatorName, err)
	}
	return r, nil
}
