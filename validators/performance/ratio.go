package performance

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/stats"
)

// ratioSeed is the seed of the bootstrap, so that equal samples give equal bounds.
const ratioSeed = 1

// Blocks are the samples of processes, in nanoseconds, which took turns: block i of Engine ran beside
// block i of Current. First and Second are two halves of Engine that took turns as well.
type Blocks struct {
	Engine, Current, First, Second [][]int64
}

// Ratio compares the medians of two engines, and those of an engine with itself: one-sided bounds
// by [stats.RatioBounds]. What the samples are of is left to the caller.
func Ratio(b Blocks, confidence float64) evidence.LatencyRatio {
	engine, current := median(b.Engine), median(b.Current)
	r := evidence.LatencyRatio{Blocks: len(b.Engine), CurrentNs: current, Ratio: evidence.Figure(float64(engine) / float64(max(current, 1))),
		Confidence: evidence.Figure(confidence), Seed: ratioSeed}
	low, high := stats.RatioBounds(floats(b.Engine), floats(b.Current), confidence, ratioSeed)
	sameLow, sameHigh := stats.RatioBounds(floats(b.First), floats(b.Second), confidence, ratioSeed)
	r.Low, r.High, r.SameLow, r.SameHigh = evidence.Figure(low), evidence.Figure(high), evidence.Figure(sameLow), evidence.Figure(sameHigh)
	return r
}

func median(blocks [][]int64) int64 { return Summarize(slices.Concat(blocks...), 1).P50Ns }

func floats(blocks [][]int64) [][]float64 {
	all := make([][]float64, len(blocks))
	for i, block := range blocks {
		for _, v := range block {
			all[i] = append(all[i], float64(v))
		}
	}
	return all
}
