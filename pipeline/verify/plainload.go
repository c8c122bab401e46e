package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// plainCases is on how many cases an engine with a load profile is also loaded without it, spread over all: those in front
// may be of one class or of one size.
const plainCases = 32

// checkPlainLoad loads an engine that has a load profile once more without it, in a fresh process, and
// returns its check; none for an engine without a profile. If it crashes or exceeds the engine's limits, the
// engine fails. If nodes must load it by the profile, the failure is recorded and nothing more. If it could not
// be judged, an engine that passes so far is undecided.
func checkPlainLoad(ctx context.Context, v Session, c run.Candidate, left *extra,
	whole map[string]tensor.Result, passes bool) (made evidence.Checks, against validators.Findings, err error) {
	if c.Engine.Load == nil {
		return nil, nil, nil
	}
	ctx, done := v.Env.Report().StepIn(ctx, "load "+c.Engine.Label()+" without its profile")
	defer func() {
		if len(made) == 0 {
			done("", err)
			return
		}
		done(string(made[0].Verdict), err)
	}()
	found, err := plainLoad(ctx, v, c, left, whole)
	if err != nil {
		return nil, nil, err
	}
	switch trial := validators.TrialOf(evidence.TrialPlainLoad); {
	case c.Engine.Load.Required:
		if found.Verdict == evidence.VerdictFail {
			found.Verdict = evidence.VerdictRecorded
		}
	case found.Verdict == evidence.VerdictUndecided && passes:
		against = validators.Undecided(evidence.Reason{Code: validators.ReasonNotRun, Trial: evidence.TrialPlainLoad,
			Message: "a plain load of the engine, without its load profile, was not judged: " + found.Message})
	case found.Verdict == evidence.VerdictFail:
		against = validators.Failed(evidence.Reason{Code: trial.Code, Message: fmt.Sprintf(
			"%s: %s: say required: true under load if all nodes load it with the profile",
			trial.Words, found.Message)})
	}
	return evidence.Checks{found}, against, nil
}

// plainLoad runs samples of the cases with the runtime's own defaults, each in a process of its own: those on which earlier reports
// of the engine failed, and a random one. So an engine that failed by a draw does not pass by the next.
func plainLoad(ctx context.Context, v Session, c run.Candidate, left *extra, whole map[string]tensor.Result) (found evidence.Check, err error) {
	samples := append(failedSamples(v, c), run.SpreadOver(v.Cases.Set.Count, v.copies, plainCases, draw(v)))
	cases := 0
	for i, sample := range samples {
		left.parts = len(samples) - i
		found, err = plainLoadOf(ctx, v, c, left, sample, filepath.Join(v.Scratch, fmt.Sprintf("plain-%s-%d", c.ID, i)), whole)
		cases += found.Cases
		found.Cases = cases
		if err != nil || found.Verdict != evidence.VerdictPass {
			if i < len(samples)-1 {
				found.Message = "on the cases on which it failed before: " + found.Message
			}
			if found.Verdict == evidence.VerdictFail {
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
func plainLoadOf(ctx context.Context, v Session, c run.Candidate, left *extra, sample []int, dir string,
	whole map[string]tensor.Result) (evidence.Check, error) {
	picked := run.RowsIn(v.Cases.Set.Shards, sample)
	var inputs []toolchain.Input
	for _, of := range picked {
		input, err := plainInput(v, of, dir)
		if err != nil {
			return evidence.Check{}, err
		}
		inputs = append(inputs, input)
	}
	c.Engine.Load = nil
	execution := c.Tool.Run(toolchain.RunOptions{})
	execution.Job.Machine, execution.Job.Inputs = run.Machine(v.Node), inputs
	execution.AddCandidate(c)
	shards := run.ShardsOf(picked)
	found := validators.TrialOf(evidence.TrialPlainLoad).Check("")
	found.Cases = len(sample)
	if err := left.do(ctx, &execution, filepath.Join(dir, "run")); err != nil {
		found.Verdict, found.Message = evidence.VerdictFail, registry.PlainText(strings.ReplaceAll(err.Error(), "\n", " "))
		if registry.HasCode(err, registry.CodeUnavailable) {
			found.Verdict = evidence.VerdictUndecided // it was not run, or stopped for its time or memory
		}
		return found, context.Cause(ctx)
	}
	err := judgePlain(ctx, v, c, dir, shards, whole, &found)
	return found, err
}

// judgePlain compares the outputs of a plain load with the golden outputs, and completes its check.
func judgePlain(ctx context.Context, v Session, c run.Candidate, dir string,
	shards []artifact.Shard, whole map[string]tensor.Result, check *evidence.Check) error {
	compared, err := comparisonOfSome(ctx, v, c.Engine.Precision)
	if err != nil {
		return err
	}
	compared.Engine = filepath.Join(dir, "run", "outputs", c.ID)
	return judgeSome(ctx, v, c, someOf(compared, dir, shards), whole, check)
}

// plainInput writes picked cases and their golden outputs below a folder, and gives the cases as an input of a run.
func plainInput(v Session, of run.SomeRows, dir string) (toolchain.Input, error) {
	cases := filepath.Join(dir, "cases")
	if err := of.Write(v.Cases.Dir, cases); err != nil {
		return toolchain.Input{}, err
	}
	if err := of.Write(v.Golden.Dir, filepath.Join(dir, "golden")); err != nil {
		return toolchain.Input{}, err
	}
	return toolchain.FileInput(toolchain.RoleCases, of.Shard.File, filepath.Join(cases, filepath.FromSlash(of.Shard.File)))
}
