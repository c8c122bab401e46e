package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
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
	ratio *registry.LatencyRatio
	fault string
}

// compareLatency times an engine in turns with the one that it would replace, if the limits ask.
// Errors: those of ctx and of files.
func (v verification) compareLatency(ctx context.Context, c candidate, outputs runOutputs) (found compared, err error) {
	was, ok := v.current[c.engine.Label()]
	if v.limits.Latency.Regression == nil || !ok || outputs.broken[c.id] != nil {
		return compared{}, nil
	}
	if was.fault != "" {
		return compared{fault: was.fault}, nil
	}
	inputs, cases, err := v.timingCases()
	if err != nil {
		return compared{}, err
	}
	ctx, done := v.p.report().stepIn(ctx, fmt.Sprintf("time %s beside that of %s, %d processes", c.engine.Label(), v.next.environment, 4*ratioRepeats))
	defer func() { done(found.note(), err) }()
	rounds := min(max(int(ratioTime/max(outputs.median(), 1)), 8), ratioMost)/cases + 1
	var first, second, before, after [][]int64
	for n := range ratioRepeats {
		for i, turn := range []candidate{c, was.candidate, was.candidate, c} {
			dir := filepath.Join(v.scratch, fmt.Sprintf("ratio-%s-%d-%d", c.id, n, i))
			block, err := v.block(ctx, turn, inputs, rounds, dir)
			if ctx.Err() != nil {
				return compared{}, ctx.Err()
			}
			if err != nil {
				return compared{fault: turn.engine.Label() + ": " + err.Error()}, nil
			}
			for _, list := range [][]*[][]int64{{&first, &before}, {&after}, {&after}, {&second, &before}}[i] {
				*list = append(*list, block)
			}
		}
	}
	r := performance.Ratio(performance.Blocks{Engine: before, Current: after, First: first, Second: second}, v.limits.Confidence)
	r.Environment, r.Release, r.Engine = v.next.environment, registry.NewDigestSet(v.next.release), registry.NewDigestSet(was.engine.Digest)
	return compared{ratio: &r}, nil
}

// block times an engine in a process of its own.
func (v verification) block(ctx context.Context, c candidate, inputs []toolchain.Input, rounds int, dir string) ([]int64, error) {
	run := c.tool.run(toolchain.RunOptions{Rounds: rounds, Warmup: ratioWarmup})
	run.job.Inputs = append(run.job.Inputs, inputs...)
	run.addCandidate(c)
	results, err := run.do(ctx, dir)
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
