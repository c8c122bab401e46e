package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/performance"
)

// How an engine is compared with the one that it would replace: in processes of their own, in the
// order of a palindrome, which cancels a steady drift of the machine.
const (
	ratioRepeats = 6 // of the order; as many blocks as a bootstrap needs for the engine against itself
	ratioWarmup  = 3
	ratioTime    = 250 * time.Millisecond // of the runs of a process, as far as the bounds allow
	ratioMost    = 256                    // runs
)

// compared is an engine's latency against that of the engine that it would replace, or why that
// is not known. The zero compared has nothing to compare with.
type compared struct {
	ratio *evidence.LatencyRatio
	fault string
}

// compareLatency times an engine in turns with the one that it would replace, if the limits ask.
// Errors: those of ctx and of files.
func compareLatency(ctx context.Context, v Session, c run.Candidate, outputs RunOutputs) (found compared, err error) {
	was, ok := v.current[c.Engine.Label()]
	if v.Limits.Latency.Regression == nil || !ok || outputs.broken[c.ID] != nil {
		return compared{}, nil
	}
	if was.fault != "" {
		return compared{fault: was.fault}, nil
	}
	inputs, cases, err := TimingCases(v)
	if err != nil {
		return compared{}, err
	}
	ctx, done := v.Env.Report().StepIn(ctx, fmt.Sprintf("time %s and the engine of %s, %d processes", c.Engine.Label(), v.next.environment, 4*ratioRepeats))
	defer func() { done(found.note(), err) }()
	rounds := min(max(int(ratioTime/max(outputs.median(), 1)), 8), ratioMost)/cases + 1
	var first, second, before, after [][]int64
	for n := range ratioRepeats {
		for i, turn := range []run.Candidate{c, was.Candidate, was.Candidate, c} {
			dir := filepath.Join(v.Scratch, fmt.Sprintf("ratio-%s-%d-%d", c.ID, n, i))
			block, err := block(ctx, turn, inputs, rounds, dir)
			if ctx.Err() != nil {
				return compared{}, ctx.Err()
			}
			if err != nil {
				return compared{fault: turn.Engine.Label() + ": " + err.Error()}, nil
			}
			for _, list := range [][]*[][]int64{{&first, &before}, {&after}, {&after}, {&second, &before}}[i] {
				*list = append(*list, block)
			}
		}
	}
	r := performance.Ratio(performance.Blocks{Engine: before, Current: after, First: first, Second: second}, v.Limits.Confidence)
	r.Environment, r.Release, r.Engine = v.next.environment, evidence.NewDigestSet(v.next.release), evidence.NewDigestSet(was.Engine.Digest)
	return compared{ratio: &r}, nil
}

// block times an engine in a process of its own.
func block(ctx context.Context, c run.Candidate, inputs []toolchain.Input, rounds int, dir string) ([]int64, error) {
	run := c.Tool.Run(toolchain.RunOptions{Rounds: rounds, Warmup: ratioWarmup})
	run.Job.Inputs = append(run.Job.Inputs, inputs...)
	run.AddCandidate(c)
	results, err := run.Do(ctx, dir)
	if err != nil {
		return nil, err
	}
	return results[0].TimingsNS, nil
}

func (c compared) note() string {
	if c.ratio == nil {
		return c.fault
	}
	return fmt.Sprintf("%+.1f %%, between %+.1f and %+.1f", 100*(float64(c.ratio.Ratio)-1), 100*(float64(c.ratio.Low)-1), 100*(float64(c.ratio.High)-1))
}
