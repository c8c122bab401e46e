package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Engines are compared with golden outputs, which a builder made. So a verifier runs the reference model itself on random
// cases, which a builder cannot predict, and compares its outputs with the golden outputs.
const (
	// goldenTime is what these runs may take, as far as that is known before.
	goldenTime = 10 * time.Second
	// goldenSlower is how many times slower the reference model is assumed to be on one thread and not optimized, as it runs for golden
	// outputs, than when it is timed.
	goldenSlower = 4
	// A run that is slower still is repeated with goldenLeast cases, for which it has goldenLast, or as long as an engine takes for all cases. Fewer
	// prove nothing: a builder could have the reference model be slow in all cases but the right ones.
	goldenLeast = 8
	goldenLast  = 4 * time.Minute
	// goldenTries is how many cases are looked at for each one that is drawn.
	goldenTries = 16
)

// checkGolden runs the reference model on random cases and compares its outputs with the golden outputs. one is about the time of
// one case. A run that exceeds its time is repeated with fewer cases, once. If the model cannot be run at all, the check is undecided. What the
// model computed is kept for the engines, if it agrees with the golden outputs.
// Errors: those of ctx, and of files.
func checkGolden(ctx context.Context, v Session, outputs RunOutputs, one time.Duration) (check evidence.Check, computed rerun, err error) {
	check = validators.TrialOf(evidence.TrialGolden).Check("")
	ctx, done := v.Env.Report().StepIn(ctx, "compare golden outputs with the reference model")
	var execution run.EngineRun
	defer func() { done(goldenNote(check), err, execution.Held...) }()
	dir := filepath.Join(v.Scratch, "golden-check")
	var sample []int
	drawn, err := drawGolden(v, one)
	if err != nil {
		return check, computed, err
	}
	left := newExtra(v, run.ReferenceID, outputs, 2)
	left.more(goldenSlower * goldenSlower * one)
	for first := true; ; first = false {
		sample = slices.Sorted(slices.Values(drawn))
		at := filepath.Join(dir, strconv.Itoa(len(sample)))
		if execution, err = referenceOn(v, sample, at); err != nil {
			return check, computed, err
		}
		last := !first || len(drawn) <= goldenLeast
		if last { // no other run needs time
			left.parts = 1
			left.more(max(goldenLast, time.Duration(v.Cases.Set.Count)*one))
		}
		err := left.do(ctx, &execution, filepath.Join(at, "out"))
		if err == nil {
			break
		}
		if !errors.Is(err, consistency.ErrStopped) || last {
			check.Message = registry.PlainText("the reference model was not run: " + err.Error())
			return check, computed, context.Cause(ctx)
		}
		drawn = drawn[:goldenLeast]
	}
	golden := &goldenset.Set{Set: *v.Golden.Set}
	for _, shard := range golden.Set.Shards {
		golden.Files = append(golden.Files, toolchain.OutputFile{Path: filepath.Join(v.Golden.Dir, filepath.FromSlash(shard.File))})
	}
	comparison := goldenset.Recomputed{Pairs: goldenset.Pairs{Golden: golden, Outcome: execution.Outcome, Sample: sample},
		Allowed: goldenTolerance(v), Quantities: goldenset.Quantities(v.Limits), Changed: v.Changed}
	if err := comparison.Judge(&check); err != nil || check.Verdict == evidence.VerdictFail {
		return check, computed, err
	}
	computed, err = keep(v, comparison, filepath.Join(dir, "rows"))
	return check, computed, err
}

func goldenNote(c evidence.Check) string {
	return fmt.Sprintf("%s, %s", c.Verdict, registry.Count(c.Cases, "case"))
}

// drawGolden draws cases that are no copies of an earlier one: as many as fit goldenTime if one case takes this long. A case whose golden
// outputs are those of another drawn one is taken only if there are not enough others: many cases that differ in nothing that
// counts must not hide a few.
func drawGolden(v Session, one time.Duration) ([]int, error) {
	own := run.OwnCases(v.Cases.Set.Count, v.copies)
	n := max(goldenset.SampleSize(run.SizeOf(v.Cases.Inputs(toolchain.RoleCases)), len(own)), min(goldenLeast, len(own)))
	if one > 0 {
		n = min(n, max(int(goldenTime/one), goldenLeast))
	}
	rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] }) //nolint:gosec // the system seeds it, so that no builder knows what is drawn
	known := make(map[[sha256.Size]byte]bool)
	var drawn, alike []int
	for _, number := range own[:min(len(own), goldenTries*n)] {
		sum, err := goldenSum(v, number)
		if err != nil {
			return nil, err
		}
		if known[sum] {
			alike = append(alike, number)
			continue
		}
		known[sum] = true
		if drawn = append(drawn, number); len(drawn) == n {
			break
		}
	}
	return append(drawn, alike[:min(len(alike), n-len(drawn))]...), nil
}

// goldenSum is a checksum of the golden outputs of a case.
func goldenSum(v Session, number int) (sum [sha256.Size]byte, err error) {
	shard := v.Golden.Set.Shards[goldenset.ShardOf(v.Golden.Set.Shards, number)]
	f, err := tensorfile.Open(filepath.Join(v.Golden.Dir, filepath.FromSlash(shard.File)), tensorfile.Limits{})
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	for _, name := range f.Names() {
		row := int64(number - shard.First)
		t, err := f.Rows(name, row, row+1)
		if err != nil {
			return sum, err
		}
		h.Write(t.Data)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// referenceOn is a run of the reference model on cases, each in a file of its own, as it runs for golden outputs.
func referenceOn(v Session, sample []int, dir string) (run.EngineRun, error) {
	execution := v.Tools[run.OnnxRuntime].Run(toolchain.RunOptions{})
	execution.Job.Machine = run.Machine(v.Node)
	var files []string
	for _, shard := range v.Cases.Set.Shards {
		files = append(files, filepath.Join(v.Cases.Dir, filepath.FromSlash(shard.File)))
	}
	inputs, err := goldenset.CaseFiles(sample, v.Cases.Set.Shards, files, filepath.Join(dir, "cases"))
	if err != nil {
		return execution, err
	}
	execution.Job.Inputs = inputs
	execution.AddCandidate(run.Candidate{ID: run.ReferenceID, Tool: v.Tools[run.OnnxRuntime], Model: v.ReferenceModel})
	execution.Fix()
	return execution, nil
}

// goldenTolerance is that for the reference model.
func goldenTolerance(v Session) goldenset.Tolerance {
	model, err := v.ReferenceModel.Graph()
	if err != nil {
		return goldenset.Float32
	}
	return referenceTolerance(model)
}

// heavyOperators are those that a quantized model has in 8 bits, or between quantize nodes.
var heavyOperators = []string{"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN", "Attention"}

// referenceTolerance is that for a reference model. Few quantize nodes in a model that computes in floats are no reason for
// the tolerance of one that computes in 8 bits: a builder could add one.
func referenceTolerance(model *onnx.Model) goldenset.Tolerance {
	quantized, floats := model.Quantized().Nodes, 0
	for op, n := range model.Ops {
		if slices.Contains(heavyOperators, op[strings.LastIndexByte(op, '.')+1:]) {
			floats += n
		}
	}
	if quantized > 0 && quantized < floats {
		return goldenset.Half
	}
	return goldenset.ToleranceOf(quantized > 0, model)
}
