package performance

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
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
func Ratio(b Blocks, confidence float64) registry.LatencyRatio {
	engine, current := median(b.Engine), median(b.Current)
	r := registry.LatencyRatio{Blocks: len(b.Engine), CurrentNs: current, Ratio: registry.Figure(float64(engine) / float64(max(current, 1))),
		Confidence: registry.Figure(confidence), Seed: ratioSeed}
	low, high := stats.RatioBounds(floats(b.Engine), floats(b.Current), confidence, ratioSeed)
	sameLow, sameHigh := stats.RatioBounds(floats(b.First), floats(b.Second), confidence, ratioSeed)
	r.Low, r.High, r.SameLow, r.SameHigh = registry.Figure(low), registry.Figure(high), registry.Figure(sameLow), registry.Figure(sameHigh)
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
