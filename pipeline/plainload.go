package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// plainCases is on how many cases an engine with a load profile is also loaded without it, spread over all: those in front
// may be of one class or of one size.
const plainCases = 32

// checkPlainLoad loads an engine that has a load profile once more without it, in a fresh process, and
// returns what came of that; nil for nothing. Where it crashes or exceeds the engine's limits, the
// engine fails, unless the profile says that nodes keep to it; where it could not be judged, an
// engine that passes so far is undecided.
func (v verification) checkPlainLoad(ctx context.Context, c candidate, left *extra,
	whole map[string]tensor.Result, passes bool) (made *registry.PlainLoad, against validators.Findings, err error) {
	if c.engine.Load == nil {
		return nil, nil, nil
	}
	ctx, done := v.p.report().stepIn(ctx, "load "+c.engine.Label()+" without its profile")
	defer func() {
		if made == nil {
			done("", err)
			return
		}
		done(string(made.Verdict), err)
	}()
	found, err := v.plainLoad(ctx, c, left, whole)
	if err != nil {
		return nil, nil, err
	}
	switch trial := validators.TrialOf(validators.TrialPlainLoad); {
	case c.engine.Load.Required:
	case found.Verdict == registry.VerdictUndecided && passes:
		against = validators.Undecided(registry.Reason{Code: validators.ReasonNotRun,
			Message: "a plain load of the engine, without its load profile, was not judged: " + found.Message})
	case found.Verdict == registry.VerdictFail:
		against = validators.Failed(registry.Reason{Code: trial.Code, Message: fmt.Sprintf(
			"%s: %s: say required: true under load if all nodes load it with the profile",
			trial.Words, found.Message)})
	}
	return &found, against, nil
}

// plainLoad runs samples of the cases with the runtime's own defaults, each in a process of its own: those on which earlier reports
// of the engine failed, and a random one. So an engine that failed by a draw does not pass by the next.
func (v verification) plainLoad(ctx context.Context, c candidate, left *extra, whole map[string]tensor.Result) (found registry.PlainLoad, err error) {
	samples := append(v.failedSamples(c), spreadOver(v.cases.set.Count, v.copies, plainCases, v.draw()))
	cases := 0
	for i, sample := range samples {
		left.parts = len(samples) - i
		found, err = v.plainLoadOf(ctx, c, left, sample, filepath.Join(v.scratch, fmt.Sprintf("plain-%s-%d", c.id, i)), whole)
		cases += found.Cases
		found.Cases = cases
		if err != nil || found.Verdict != registry.VerdictPass {
			if i < len(samples)-1 {
				found.Message = "on the cases on which it failed before: " + found.Message
			}
			if found.Verdict == registry.VerdictFail {
				found.Drawn = sample
			}
			break
		}
	}
	return found, err
}

// plainLoadOf runs a sample of the cases with the runtime's own defaults, and judges it by what the
// limits say of elements and cases; accuracy is of the whole set. Whatever the runtime throws
// counts against the engine, since it ran here a moment before; time and memory that are used up do not.
func (v verification) plainLoadOf(ctx context.Context, c candidate, left *extra, sample []int, dir string,
	whole map[string]tensor.Result) (registry.PlainLoad, error) {
	picked := rowsIn(v.cases.set.Shards, sample)
	var inputs []toolchain.Input
	for _, of := range picked {
		input, err := v.plainInput(of, dir)
		if err != nil {
			return registry.PlainLoad{}, err
		}
		inputs = append(inputs, input)
	}
	c.engine.Load = nil
	run := c.tool.run(toolchain.RunOptions{})
	run.job.Machine, run.job.Inputs = machine(v.node), inputs
	run.addCandidate(c)
	shards := shardsOf(picked)
	found := registry.PlainLoad{Cases: len(sample)}
	if err := left.do(ctx, &run, filepath.Join(dir, "run")); err != nil {
		found.Verdict, found.Message = registry.VerdictFail, registry.PlainText(strings.ReplaceAll(err.Error(), "\n", " "))
		if registry.HasCode(err, registry.CodeUnavailable) {
			found.Verdict = registry.VerdictUndecided // it was not run, or stopped for its time or memory
		}
		return found, context.Cause(ctx)
	}
	var err error
	found.Verdict, found.Message, err = v.judgePlain(ctx, c, dir, shards, whole)
	return found, err
}

// judgePlain compares the outputs of a plain load with the golden outputs.
func (v verification) judgePlain(ctx context.Context, c candidate, dir string,
	shards []registry.Shard, whole map[string]tensor.Result) (registry.Verdict, string, error) {
	compared, err := v.comparisonOfSome(ctx, c.engine.Precision)
	if err != nil {
		return registry.VerdictUndecided, "", err
	}
	compared.Engine = filepath.Join(dir, "run", "outputs", c.id)
	return v.judgeSome(ctx, c, someOf(compared, dir, shards), whole)
}
