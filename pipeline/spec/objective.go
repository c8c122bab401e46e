package spec

import "cmp"

// Objective is what `mlpromote tune` looks for. It decides nothing about a build.
type Objective struct {
	Max       string    `yaml:"max" doc:"What should be as much as possible" enum:"throughput,accuracy"`
	Min       string    `yaml:"min" doc:"What should be as little as possible" enum:"latency,size"`
	SubjectTo SubjectTo `yaml:"subject_to" doc:"What must be kept beside the limits"`
}

// SubjectTo are the constraints of an objective.
type SubjectTo struct {
	P50          Duration  `yaml:"p50" doc:"Median of a run at most"`
	P99          Duration  `yaml:"p99" doc:"99th percentile of a run at most"`
	AccuracyDrop *Fraction `yaml:"accuracy_drop" doc:"Accuracy of the reference minus that of the engine at most, on labelled cases"`
}

// Tune is what `mlpromote tune` tries.
type Tune struct {
	Variants []Variant  `yaml:"variants" doc:"Variants to try; one of each method that the spec has what it takes for where nothing is said"`
	Exclude  [][]string `yaml:"exclude" doc:"Lists of nodes: every quantized variant is tried without quantizing those of each list, too"`
}

// Goals of an objective.
const (
	GoalThroughput = "throughput" // the default
	GoalAccuracy   = "accuracy"
	GoalLatency    = "latency"
	GoalSize       = "size"
)

// Goal is what is to be as good as possible.
func (o Objective) Goal() string { return cmp.Or(o.Max, o.Min, GoalThroughput) }
