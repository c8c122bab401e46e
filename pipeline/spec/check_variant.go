package spec

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators"
)

// variantName is what a variant may be called: a part of a tag without a dot.
var variantName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

func (c checker) checkVariants() {
	if len(c.Variants) == 0 {
		c.problem(at("variants"), "variants is empty: want at least one, for example [fp32]")
	}
	seen := make(map[string]bool)
	for i, v := range c.Variants {
		if seen[v.Name] {
			c.problem(at("variants", i, "name"), "variant %q is here twice", v.Name)
		}
		seen[v.Name] = true
		c.checkVariant(at("variants", i), v)
	}
}

// checkVariant checks the variant at a place. Without quantize its name is its precision.
func (c checker) checkVariant(place []any, v Variant) {
	under := func(keys ...any) []any { return slices.Concat(place, keys) }
	written := c.doc.At(under("quantize")...) != c.doc.At(place...)
	available := []string{validators.PrecisionFP32, validators.PrecisionFP16,
		validators.PrecisionInt8, validators.PrecisionInt4}
	switch {
	case v.Compressed() && !variantName.MatchString(v.Name):
		c.problem(under("name"), "variant name %q: want lower-case letters and digits with inner '_' or '-'", v.Name)
	case v.Compressed(), v.Compress != nil:
	case !written && !c.oneOf(under("name"), "variant", v.Name, available, validators.Precisions()):
		return
	case written && v.Name != v.Precision && slices.Contains(validators.Precisions(), v.Name):
		c.problem(under("name"),
			"variant %q is quantized to %s: want a name that does not say otherwise", v.Name, v.Precision)
	case !variantName.MatchString(v.Name):
		c.problem(under("name"), "variant name %q: want lower-case letters and digits with inner '_' or '-'", v.Name)
	}
	c.checkCompressed(under, v)
	if v.Quantize != nil {
		c.checkQuantize(under, v, *v.Quantize)
	}
}

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

// maxCompress is how many steps of compression a variant has at most: each takes a run of the calibration data.
const maxCompress = 16

// checkQuantize checks that the method is known and that the other keys mean
// something to it.
func (c checker) checkQuantize(under func(...any) []any, v Variant, q Quantize) {
	name := v.Name
	key := func(k string) []any { return under("quantize", k) }
	if !c.oneOf(key("method"), "quantization method", q.Method, methods(), nil) {
		return
	}
	tool := cmp.Or(q.Tool, ToolONNXRuntime)
	if !c.oneOf(key("tool"), "quantization tool", tool, tools(), nil) {
		return
	}
	quantized := []string{validators.PrecisionInt8, validators.PrecisionInt4}
	if c.Source.Format == FormatGGUF {
		quantized = []string{validators.PrecisionInt8, validators.PrecisionFP16}
	}
	if q.Method == MethodNone && !v.Compressed() && !slices.Contains(quantized, name) {
		c.problem(under("name"),
			"variant %q stays as its source is: name it after the source's precision, %s", name, strings.Join(quantized, " or "))
	}
	for _, g := range q.given() {
		switch {
		case !g.is:
		case !slices.Contains(g.methods, q.Method):
			c.problem(key(g.key),
				"%s means nothing to method %s, only to %s: remove it", g.key, q.Method, strings.Join(g.methods, " and "))
		case !slices.Contains(g.tools, tool):
			c.problem(key(g.key),
				"%s means nothing to %s, only to tool %s: remove it", g.key, tool, strings.Join(g.tools, " and "))
		}
	}
	c.checkQuantizeWords(q, key)
	c.checkQuantizeValues(v, q, key)
	if q.Calibrated() && c.Calibration == nil {
		c.problem(under(), "variant %q needs calibration and there is none: add calibration: {path: FOLDER} with typical inputs", name)
	}
	if a := c.Limits.Accuracy; q.AccuracyAware && (a == nil || a.Drop == nil || a.Metric != validators.MetricTop1) {
		c.problem(key("accuracy_aware"),
			"accuracy_aware keeps the drop of limits.accuracy for metric top1 and there is none: add limits: {accuracy: {metric: top1, drop: {max: 0.5%%}}}")
	}
}

// checkQuantizeWords checks the values that are words.
func (c checker) checkQuantizeWords(q Quantize, key func(string) []any) {
	for _, w := range []struct {
		key, word string
		known     []string
	}{
		{"observer", q.Observer, []string{ObserverMinMax, ObserverEntropy, ObserverPercentile}},
		{"format", q.Format, []string{FormatQDQ, FormatQOperator}},
		{"preset", q.Preset, []string{PresetPerformance, PresetMixed}},
		{"algorithm", q.Algorithm, []string{AlgorithmRTN, AlgorithmHQQ}},
	} {
		if w.word != "" {
			c.oneOf(key(w.key), w.key, w.word, w.known, nil)
		}
	}
}

// checkQuantizeValues checks the values of keys that are given.
func (c checker) checkQuantizeValues(v Variant, q Quantize, key func(string) []any) {
	if q.Percentile != 0 && (q.Observer != ObserverPercentile || q.Percentile <= 0.5 || q.Percentile > 1) {
		c.problem(key("percentile"),
			"percentile %v: want observer percentile, and more than 50%% and at most 100%%", float64(q.Percentile))
	}
	c.checkBits(v, q, key("bits"))
	if q.BlockSize != 0 && !slices.Contains([]int{16, 32, 64, 128, 256}, q.BlockSize) {
		c.problem(key("block_size"), "block_size %d: want 16, 32, 64, 128 or 256", q.BlockSize)
	}
	if t := q.Tolerance; t != nil && (t.RTol < 0 || t.ATol < 0 || t.RTol+t.ATol == 0) {
		c.problem(key("tolerance"), "tolerance: want rtol or atol, and no less than 0")
	}
}

// checkBits checks the number of bits, if it is given.
func (c checker) checkBits(v Variant, q Quantize, place []any) {
	if q.Tool == ToolTorchAO {
		if q.Method == MethodWeights && q.Bits != 8 {
			c.problem(place, "torchao makes weights of 8 bits: say bits: 8")
		}
		return
	}
	if q.Bits == 0 {
		return
	}
	if q.Bits != 4 && q.Bits != 8 {
		c.problem(place, "bits %d: want 4 or 8", q.Bits)
	}
	if q.Method == MethodNone && v.Model.Written == "" {
		c.problem(place, "the name of the variant says the precision of a source that is quantized: remove bits")
	}
	if q.Bits == 8 && q.Method == MethodWeights && (q.Tool != ToolNNCF || q.BlockSize != 0) {
		c.problem(place, "weights of 8 bits are made by tool nncf, with a scale for each channel: say tool: nncf and no block_size, or bits: 4")
	}
}
