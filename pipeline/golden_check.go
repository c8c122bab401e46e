package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Engines are compared with golden outputs, which a builder made. So a verifier runs the reference model itself on random
// cases, which a builder cannot predict, and compares its outputs with the golden outputs.
const (
	// goldenTime is what these runs may take, as far as that is known before.
	goldenTime = 10 * time.Second
	// A golden output differs where more than this share of its elements are outside the tolerance: another processor can
	// decide near ties otherwise.
	goldenShare = 1e-3
	// goldenDiffer is in how many cases one may differ.
	goldenDiffer = 64
	// goldenSlower is how many times slower the reference model is assumed to be on one thread and not optimized, as it runs for golden
	// outputs, than when it is timed. A run that is slower still is repeated with this fraction of the cases.
	goldenSlower = 4
	goldenFewer  = 8
)

// reasonGolden is the reason of a parity report whose golden outputs are not the reference model's.
const reasonGolden = "golden_outputs"

// checkGolden runs the reference model on random cases and compares its outputs with the golden outputs. one is about the time of
// one case. A run that exceeds its time is repeated with fewer cases. If the model cannot be run at all, the check is undecided.
// Errors: those of ctx, and of files.
func (v verification) checkGolden(ctx context.Context, outputs runOutputs, one time.Duration) (check registry.ConsistencyCheck, err error) {
	check = registry.ConsistencyCheck{Kind: registry.ConsistencyGolden, Verdict: registry.VerdictUndecided}
	ctx, done := v.p.report().stepIn(ctx, "compare golden outputs with the reference model")
	var run engineRun
	defer func() { done(goldenNote(check), err, run.held...) }()
	dir := filepath.Join(v.scratch, "golden-check")
	defer os.RemoveAll(dir)
	var sample []int
	drawn := v.drawGolden(one)
	for left := v.extra(referenceID, outputs, 2); ; drawn = drawn[:max(len(drawn)/goldenFewer, 1)] {
		sample = slices.Sorted(slices.Values(drawn))
		at := filepath.Join(dir, strconv.Itoa(len(sample)))
		if run, err = v.referenceOn(sample, at); err != nil {
			return check, err
		}
		err := left.do(ctx, &run, filepath.Join(at, "out"))
		if err == nil {
			break
		}
		if !errors.Is(err, consistency.ErrStopped) || len(sample) == 1 {
			check.Message = registry.PlainText("the reference model was not run: " + err.Error())
			return check, context.Cause(ctx)
		}
	}
	golden := &goldenSet{set: *v.golden.set}
	for _, shard := range golden.set.Shards {
		golden.files = append(golden.files, toolchain.OutputFile{Path: filepath.Join(v.golden.dir, filepath.FromSlash(shard.File))})
	}
	err = compareGolden(crossCheckPairs{golden: golden, outcome: run.outcome, sample: sample}, v.goldenTolerance(), &check)
	return check, err
}

func goldenNote(c registry.ConsistencyCheck) string {
	return fmt.Sprintf("%s, %s", c.Verdict, registry.Count(c.Cases, "case"))
}

// drawGolden picks cases at random: as many as fit goldenTime if one case takes this long.
func (v verification) drawGolden(one time.Duration) []int {
	n := crossCheckCount(sizeOfInputs(v.cases.inputs(toolchain.RoleCases)), v.cases.set.Count)
	if one > 0 {
		n = min(n, max(int(goldenTime/one), 1))
	}
	return rand.Perm(v.cases.set.Count)[:min(n, v.cases.set.Count)] //nolint:gosec // the system seeds it, so that no builder knows what is drawn
}

// referenceOn is a run of the reference model on cases, each in a file of its own, as it runs for golden outputs.
func (v verification) referenceOn(sample []int, dir string) (engineRun, error) {
	run := v.tools[onnxRuntime].run(toolchain.RunOptions{})
	run.job.Machine = machine(v.node)
	var files []string
	for _, shard := range v.cases.set.Shards {
		files = append(files, filepath.Join(v.cases.dir, filepath.FromSlash(shard.File)))
	}
	inputs, err := eachCase(sample, v.cases.set.Shards, files, filepath.Join(dir, "cases"))
	if err != nil {
		return run, err
	}
	run.job.Inputs = inputs
	run.addCandidate(candidate{id: referenceID, tool: v.tools[onnxRuntime], model: v.referenceModel})
	run.fix()
	return run, nil
}

// goldenTolerance is that for the reference model.
func (v verification) goldenTolerance() crossCheckTolerance {
	for _, in := range v.referenceModel.inputs {
		if in.Name != v.referenceModel.entry {
			continue
		}
		if model, err := readGraph(in.Path); err == nil {
			return toleranceOf(model.Quantized().Nodes > 0, model)
		}
	}
	return crossCheckFloat32
}

// readGraph reads an ONNX file by its name.
func readGraph(file string) (*format.Model, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return format.ReadONNX(f, info.Size(), format.Limits{})
}

// compareGolden counts the cases that differ, of all outputs together.
func compareGolden(pairs crossCheckPairs, allowed crossCheckTolerance, check *registry.ConsistencyCheck) error {
	names, err := pairs.names()
	if err != nil {
		return err
	}
	differ := make(map[int]bool)
	for _, name := range names {
		dtype, values, err := pairs.values(name)
		if err != nil {
			return err
		}
		for i, number := range pairs.sample {
			found, err := pairs.compareCase(name, i, allowed.options(dtype, values))
			if err != nil {
				return err
			}
			if found.maxAbs > float64(check.MaxAbs) {
				check.MaxAbs, check.Output = registry.Figure(found.maxAbs), name
			}
			if found.said == "" {
				continue
			}
			if len(differ) == 0 {
				check.Message = registry.PlainText(fmt.Sprintf("output %s of case %d: %s", name, number, found.said))
			}
			differ[number] = true
		}
	}
	check.Cases, check.Affected, check.Verdict = len(pairs.sample), len(differ), registry.VerdictPass
	switch {
	case check.Affected > check.Cases/goldenDiffer:
		check.Verdict = registry.VerdictFail
		check.Message = fmt.Sprintf("of %s the reference model computes something else than the golden outputs in %d: %s",
			registry.Count(check.Cases, "case"), check.Affected, check.Message)
	case check.Affected > 0:
		check.Verdict = registry.VerdictRecorded
	}
	return nil
}

// differing is how a golden output of a case differs from what the reference model computed now: said is empty if it does not.
type differing struct {
	maxAbs float64
	said   string
}

func (p crossCheckPairs) compareCase(name string, at int, options tensor.Options) (differing, error) {
	golden, err := p.goldenRow(name, p.sample[at])
	if err != nil {
		return differing{}, err
	}
	file, ok := p.outcome.File(path.Join("outputs", referenceID, crossCheckFile(at)))
	if !ok {
		return differing{}, registry.Errorf(registry.CodeInternal, "the reference model left no outputs of case %d", p.sample[at])
	}
	now, err := readRow(file.Path, name, 0)
	if err != nil {
		return differing{math.Inf(1), "it cannot be read: " + err.Error()}, nil //nolint:nilerr // the model left something else
	}
	comparison := tensor.NewComparison(options)
	if err := comparison.Add(p.sample[at], golden, now); errors.Is(err, tensor.ErrMismatch) {
		return differing{math.Inf(1), err.Error()}, nil
	} else if err != nil {
		return differing{}, err
	}
	r := comparison.Result()
	found := differing{maxAbs: r.MaxAbs}
	if w := r.Worst; w != nil && float64(r.Failed) > goldenShare*float64(r.Elements) {
		found.said = fmt.Sprintf("at %v it is %.6g, and the golden output %.6g", w.Index[min(1, len(w.Index)):], w.Engine, w.Reference)
	}
	return found, nil
}
