package spec

import "strings"

// Compress is a step that makes a smaller function of the model, before it is quantized. Which keys mean something depends on the
// method.
type Compress struct {
	Method  string    `yaml:"method,required" doc:"prune: weights or channels are removed; low-rank: a layer becomes two smaller ones" enum:"prune,low-rank"`
	Pattern string    `yaml:"pattern" doc:"Of prune, needed. unstructured: the smallest weights of each layer become zero; 2:4: two of every four along the axis that is summed over do; channels: whole channels and neurons are removed" enum:"unstructured,2:4,channels"`
	Amount  *Fraction `yaml:"amount" doc:"Share of the weights or channels of each layer that goes; needed for patterns unstructured and channels"`
	Energy  *Fraction `yaml:"energy" doc:"Of low-rank: share of the squares of the singular values that each layer keeps; energy or rank is needed"`
	Rank    *int      `yaml:"rank" doc:"Of low-rank: singular values that each layer keeps"`
	Nodes   []string  `yaml:"nodes" doc:"Names of nodes that are compressed; all that can be where nothing is said. One that cannot be is an error"`
	Exclude []string  `yaml:"exclude" doc:"Names of nodes that stay as they are"`
}

// Methods and patterns of compression.
const (
	MethodPrune         = "prune"
	MethodLowRank       = "low-rank"
	PatternUnstructured = "unstructured"
	PatternTwoOfFour    = "2:4"
	PatternChannels     = "channels"
)

// String names the step in messages: "prune 2:4", "low-rank".
func (s Compress) String() string { return strings.TrimSpace(s.Method + " " + s.Pattern) }
