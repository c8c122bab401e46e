package spec

import (
	"reflect"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators"
)

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

// maxCompress is how many steps of compression a variant has at most: each takes a run of the calibration data.
const maxCompress = 16

// Flow writes the step on one line, as a spec may hold it.
func (s Compress) Flow() string { return flow(reflect.ValueOf(s)) }

// String names the step in messages: "prune 2:4", "low-rank".
func (s Compress) String() string { return strings.TrimSpace(s.Method + " " + s.Pattern) }

// Compressed reports whether the variant's engines compute another function than the reference model.
func (v Variant) Compressed() bool { return len(v.Compress) > 0 || v.Model.Written != "" }

// checkCompressed checks what a variant says of its model: the steps that make it smaller, or the file that it is.
func (c checker) checkCompressed(under func(...any) []any, v Variant) {
	if c.doc.At(under("compress")...) != c.doc.At(under()...) && len(v.Compress) == 0 {
		c.problem(under("compress"), "compress is empty: want at least one step, such as [{method: prune, pattern: 2:4}]")
	}
	if !v.Compressed() {
		return
	}
	if slices.Contains(validators.Precisions(), v.Name) {
		c.problem(under("name"), "variant %q is another, smaller model, and not the reference model in %s: want a name that does not say otherwise, such as %s-small",
			v.Name, v.Name, v.Name)
	}
	c.exists(v.Model, false, under("model")...)
	if len(v.Compress) == 0 {
		return
	}
	if c.Calibration == nil {
		c.problem(under("compress"),
			"variant %q needs calibration and there is none: what each step costs is measured on it, and not on the cases. Add calibration: {path: FOLDER} with typical inputs",
			v.Name)
	}
	if q := v.Quantize; q != nil && q.Method == MethodNone {
		c.problem(under("compress"), "variant %q is quantized already, and compression starts from weights in full precision: leave out quantize, or compress", v.Name)
	}
	if len(v.Compress) > maxCompress {
		c.problem(under("compress"), "%d steps: want at most %d", len(v.Compress), maxCompress)
	}
	for i, s := range v.Compress {
		c.checkStep(func(key string) []any { return under("compress", i, key) }, s)
	}
}

// checkStep checks that the method is known and that the other keys are there and mean something to it.
func (c checker) checkStep(key func(string) []any, s Compress) {
	if !c.oneOf(key("method"), "compression method", s.Method, []string{MethodPrune, MethodLowRank}, nil) {
		return
	}
	for _, g := range []struct {
		name, method string
		is           bool
	}{
		{"pattern", MethodPrune, s.Pattern != ""}, {"amount", MethodPrune, s.Amount != nil},
		{"energy", MethodLowRank, s.Energy != nil}, {"rank", MethodLowRank, s.Rank != nil},
	} {
		if g.is && g.method != s.Method {
			c.problem(key(g.name), "%s means nothing to method %s, only to %s: remove it", g.name, s.Method, g.method)
		}
	}
	for _, name := range s.Nodes {
		if slices.Contains(s.Exclude, name) {
			c.problem(key("exclude"), "node %q is in nodes and in exclude: want one of them", name)
		}
	}
	if s.Method == MethodPrune {
		c.checkPrune(key, s)
		return
	}
	c.checkLowRank(key, s)
}

func (c checker) checkPrune(key func(string) []any, s Compress) {
	patterns := []string{PatternUnstructured, PatternTwoOfFour, PatternChannels}
	switch {
	case s.Pattern == "":
		c.problem(key("pattern"), "pattern is missing: want %s", strings.Join(patterns, ", "))
	case !c.oneOf(key("pattern"), "pattern", s.Pattern, patterns, nil):
	case s.Pattern == PatternTwoOfFour && s.Amount != nil:
		c.problem(key("amount"), "pattern 2:4 always makes half of the weights zero: remove amount")
	case s.Pattern != PatternTwoOfFour && s.Amount == nil:
		c.problem(key("amount"), "amount is missing: want the share of each layer that goes, such as amount: 50%%")
	case s.Amount != nil && !(*s.Amount > 0 && *s.Amount < 1):
		c.problem(key("amount"), "amount %s: want more than 0%% and less than 100%%", flow(reflect.ValueOf(*s.Amount)))
	}
}

func (c checker) checkLowRank(key func(string) []any, s Compress) {
	switch {
	case (s.Energy == nil) == (s.Rank == nil):
		c.problem(key("energy"), "want energy or rank, such as energy: 99%%")
	case s.Energy != nil && !(*s.Energy > 0 && *s.Energy <= 1):
		c.problem(key("energy"), "energy %s: want more than 0%% and at most 100%%", flow(reflect.ValueOf(*s.Energy)))
	case s.Rank != nil && *s.Rank < 1:
		c.problem(key("rank"), "rank %d: want at least 1", *s.Rank)
	}
}
