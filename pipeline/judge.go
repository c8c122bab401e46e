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

// Bounds of judging the golden outputs.
const (
	judgeTime   = 60 * time.Second // of all cases; the driver stops between two of them
	judgeKill   = 3 * judgeTime    // when the driver is ended, if one operator takes that long
	judgedCases = 64
	judgedBytes = 64 << 20 // of the inputs of all judged cases but the first
	// judgedModel is the size in bytes from which models are not evaluated: one case in numpy
	// takes minutes, and the evaluator holds the weights several times.
	judgedModel = 1 << 30
)

// judgeName is what provenance and messages call ONNX's evaluator.
const judgeName = "onnx reference evaluator"

// judgeResult is the Result of a run by ONNX's evaluator.
type judgeResult struct {
	toolchain.RunResult
	Evaluator string   `json:"evaluator"` // version of ONNX
	Missing   []string `json:"missing"`   // operators that it lacks
	Reason    string   `json:"reason"`    // why it did not run all cases
}

// judge compares a sample of the golden outputs with what ONNX's reference evaluator computes
// from the same model and cases, and notes the result in golden. Outputs that the framework of
// the source computed are their own judge. Where the evaluator cannot decide, golden is unjudged,
// with a warning. Errors: CodeLimit for outputs that it does not confirm, unless the spec accepts
// them.
func (m maker) judge(ctx context.Context, to reporter, golden *goldenSet) error {
	golden.judged = registry.Judged{By: judgeName, Of: golden.set.Count}
	j := &golden.judged
	if f := m.inputs.imported.framework; f.driver != nil {
		j.By, j.Cases, j.Reason = "source framework, "+f.name+" "+m.inputs.imported.identity.Version, golden.set.Count, "they are its own outputs"
		return nil
	}
	if err := m.evaluate(ctx, to, golden); err != nil {
		return err
	}
	if j.Cases == 0 && m.tools[onnxRuntime].Judge != nil {
		golden.warnings = append(golden.warnings, "no one but ONNX Runtime says what the reference computes: "+j.String())
	}
	if j.Worst == nil || !(j.Worst.Share > 1) {
		return nil
	}
	err := unconfirmed(*j)
	if m.inputs.accepted == "" {
		return err
	}
	j.Accepted = m.inputs.accepted
	golden.warnings = append(golden.warnings, fmt.Sprintf("%v; the spec accepts it: %q", err, j.Accepted))
	return nil
}

// unconfirmed is the error about golden outputs that the judge does not confirm.
func unconfirmed(j registry.Judged) error {
	w := j.Worst
	said := fmt.Sprintf("output %q%v of case %d is %v by ONNX Runtime and %v by the %s, %.3g times the tolerance apart",
		w.Output, w.Index, w.Case, float64(w.Golden), float64(w.Judge), j.By, float64(w.Share))
	if w.Index == nil {
		said = fmt.Sprintf("output %q by ONNX Runtime and by the %s: %s", w.Output, j.By, j.Reason)
	}
	return registry.WithHint(registry.Errorf(registry.CodeLimit, "judge the reference: %s", said),
		`one of the two does not compute what ONNX defines: export the model with other operators or another opset, or accept what ONNX Runtime computes: reference: {accept: "your reason"}`)
}

// evaluate runs the evaluator on a sample and compares what it left. A failure of the evaluator
// leaves golden unjudged. Errors: those of ctx, and of files.
func (m maker) evaluate(ctx context.Context, to reporter, golden *goldenSet) error {
	j := &golden.judged
	driver := m.tools[onnxRuntime].Judge
	if driver == nil {
		j.Reason = "there is no " + j.By + " here"
		return nil
	}
	if size := bytesOf(m.inputs.imported.source.files); size >= m.judgeBelow {
		j.Reason = fmt.Sprintf("the model has %d bytes, and the %s is for less than %d", size, j.By, m.judgeBelow)
		return nil
	}
	sample, job, err := m.judgeJob()
	if err != nil {
		return err
	}
	done := to.step("judge the reference")
	dir, err := os.MkdirTemp(m.scratch, "judge-*")
	if err != nil {
		return err
	}
	outcome, err := driver.Do(ctx, job, filepath.Join(dir, "out"))
	switch {
	case ctx.Err() != nil:
		done("", context.Canceled)
		return err
	case err != nil:
		j.Reason = err.Error()
		done("unjudged", nil)
		return nil //nolint:nilerr // that the judge fails is no fault of the model; the reason is recorded
	}
	golden.judging = takenStep{name: "judge the reference", options: job.Options, outcome: outcome, driver: driver, job: job}
	err = golden.compare(outcome, sample, m.tolerance())
	note := j.String()
	if outcome.Cached {
		note = remembered(outcome.Origin) + ", " + note
	}
	done(note, err, outcome.Enforced.String())
	return err
}

// judgeJob is the run of the evaluator: the model as it was given, and each case of the sample in
// a file of its own, so that names tell which were run.
func (m maker) judgeJob() (sample []int, job toolchain.Job, err error) {
	source := m.inputs.imported.source
	budget := m.budgets[onnxRuntime]
	seconds := judgeTime
	if budget.Time > 0 {
		seconds = min(seconds, budget.Time/2)
	} else {
		budget.Time = judgeKill
	}
	job = toolchain.Job{Verb: toolchain.VerbRun, Machine: machine(m.node), Inputs: slices.Clone(source.files), Budget: budget,
		Options: map[string]any{"seconds": seconds.Seconds()},
		Run:     &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: referenceID, Path: source.files[0].Name}}}}
	set := m.inputs.Cases
	sample = sampleOf(set.Record.Count, judgeCount(bytesOf(set.Files), set.Record.Count))
	dir, err := os.MkdirTemp(m.scratch, "judged-cases-*")
	if err != nil {
		return nil, toolchain.Job{}, err
	}
	for i, number := range sample {
		shard := shardOf(set.Record.Shards, number)
		row := int64(number - set.Record.Shards[shard].First)
		name := judgedFile(i)
		path := filepath.Join(dir, name)
		if err := writeRows(path, []rowsOf{{set.Files[shard].Path, row, row + 1, int64(set.Record.Shards[shard].Count)}}); err != nil {
			return nil, toolchain.Job{}, err
		}
		in, err := toolchain.FileInput(toolchain.RoleCases, name, path)
		if err != nil {
			return nil, toolchain.Job{}, err
		}
		job.Inputs = append(job.Inputs, in)
	}
	return sample, job, nil
}

// judgedFile names the file of the i-th case of the sample.
func judgedFile(i int) string { return fmt.Sprintf("case-%05d.safetensors", i) }

// judgeCount is how many of count cases of size bytes together are in the sample: at least one.
func judgeCount(size int64, count int) int {
	return max(1, min(count, judgedCases, int(judgedBytes/max(size/int64(max(count, 1)), 1))))
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

func bytesOf(inputs []toolchain.Input) int64 {
	var n int64
	for _, in := range inputs {
		n += in.Size
	}
	return n
}

// readJudgeResult reads what the evaluator says of its run. Errors: CodeInternal.
func readJudgeResult(o toolchain.Outcome, sample int) (judgeResult, error) {
	var r judgeResult
	err := json.Unmarshal(o.Result, &r)
	if err == nil && (r.Cases < 0 || r.Cases > sample) {
		err = errors.New("it has more cases than it was given")
	}
	if err != nil {
		return r, registry.Errorf(registry.CodeInternal, "result of the %s: %w", judgeName, err)
	}
	return r, nil
}
