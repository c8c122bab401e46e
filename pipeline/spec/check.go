package spec

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// maxGenerated is how many cases are generated at most.
const maxGenerated = 100_000

// maxTag is the length of a tag in the OCI distribution specification; the rest of
// an engine's tag is room for its revision: "-r999".
const maxTag = 128 - len("-r999")

// variantName is what a variant may be called: a part of a tag without a dot.
var variantName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

// runnerLabel is what the label of a CI runner may be. Systems put it into commands and expressions.
var runnerLabel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// featureName is what a CPU feature is called, in lower case.
var featureName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// imageName is a reference or digest of an image, which podman and docker read further.
var imageName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/@-]{0,511}$`)

// checker notes in the document what is wrong with the meaning of the spec.
type checker struct {
	*Spec
	doc    *strictyaml.Document
	others []string // toolchains besides those that ship with us
}

func (c checker) check() {
	c.report(registry.ValidateModel(c.Model), "model")
	c.report(registry.ValidateVersion(c.Version), "version")
	c.checkSources()
	c.checkCases()
	c.checkVariants()
	c.checkTargets()
	c.checkLoad()
	c.checkKinds()
	c.checkNames()
	c.checkLimits()
	c.checkReference()
	c.checkBudgets()
	c.checkTune()
}

// report notes err, if any, at the path.
func (c checker) report(err error, path ...any) {
	if err != nil {
		c.doc.At(path...).Problemf("%s", err)
	}
}

// problem notes what is wrong at the path.
func (c checker) problem(path []any, format string, args ...any) {
	c.doc.At(path...).Problemf(format, args...)
}

func at(path ...any) []any { return path }

// oneOf checks a word. The available ones are allowed; the others are understood,
// and refused for what they are.
func (c checker) oneOf(path []any, what, word string, available, others []string) bool {
	switch {
	case slices.Contains(available, word):
		return true
	case slices.Contains(others, word):
		c.problem(path, "%s %q is not available in this version: want %s", what, word, strings.Join(available, ", "))
	default:
		known := append(slices.Clone(available), others...)
		c.problem(path, "unknown %s %q%s: want %s", what, word,
			registry.Suggest(word, known), strings.Join(available, ", "))
	}
	return false
}

func (c checker) checkSources() {
	c.exists(c.Source.Path, InFolder(c.Source.Format), "source", "path")
	c.checkFormat()
	if c.Calibration != nil {
		c.existsFolder(c.Calibration.Path, "calibration", "path")
	}
	names := make(map[string]int)
	for i, asset := range c.Assets {
		c.exists(asset, false, "assets", i)
		name := path.Base(asset.Written)
		if first, ok := names[name]; ok {
			c.problem(at("assets", i), "asset %q has the file name of asset %q: want names that differ, since an engine holds all in one folder",
				asset.Written, c.Assets[first].Written)
		}
		names[name] = i
	}
	for _, symbol := range slices.Sorted(maps.Keys(c.Shapes)) {
		c.report(validators.DimRange(c.Shapes[symbol]).Validate(), "shapes", symbol)
	}
}

// checkFormat checks that every key of the source applies to its format. Whether a pickle is
// trusted is checked elsewhere.
func (c checker) checkFormat() {
	s := c.Source
	c.oneOf(at("source", "format"), "source format", s.Format, Formats(),
		[]string{"pytorch", "tensorflow"})
	c.checkArchitecture()
	c.checkInputs()
	if s.Simplify && s.Format != FormatONNX {
		c.problem(at("source", "simplify"), "simplify is for format %s: remove the key", FormatONNX)
	}
	if len(s.Operators) > 0 && s.Format != FormatONNX {
		c.problem(at("source", "operators"), "operators are for format %s: remove the key", FormatONNX)
	}
	names := make(map[string]bool)
	for i, p := range s.Operators {
		c.exists(p, false, "source", "operators", i)
		if name := path.Base(p.Written); names[name] {
			c.problem(at("source", "operators", i),
				"two libraries are called %q: want names that differ, since an engine holds all in one folder", name)
		} else {
			names[name] = true
		}
	}
	if len(s.Trust.Types) > 0 && s.Format != FormatSkops {
		c.problem(at("source", "trust", "types"), "types are trusted in format %s: remove the key", FormatSkops)
	}
	if pickles := []string{FormatPickle, FormatTorchExport, FormatTorchScript}; s.Trust.Pickle && !slices.Contains(pickles, s.Format) {
		c.problem(at("source", "trust", "pickle"), "trust in pickles is for formats %s: remove the key", strings.Join(pickles, ", "))
	}
}

// checkArchitecture checks that weights, and nothing else, have an architecture. Whether it
// fits them is for the importer to find out.
func (c checker) checkArchitecture() {
	a := c.Source.Architecture
	switch {
	case a == nil && c.Source.Format == FormatSafetensors:
		c.problem(at("source"),
			"a safetensors file holds weights and no network: want architecture: {kind: mlp, input: [SIZE], layers: [NAME, relu, NAME]}")
	case a == nil:
	case c.Source.Format != FormatSafetensors:
		c.problem(at("source", "architecture"), "an architecture is for format %s: remove the key", FormatSafetensors)
	default:
		dims := map[string]int{ArchitectureMLP: 1, ArchitectureCNN: 3, ArchitectureEncoder: 1}
		if !c.oneOf(at("source", "architecture", "kind"),
			"architecture", a.Kind, []string{ArchitectureMLP, ArchitectureCNN, ArchitectureEncoder}, []string{"resnet"}) {
			return
		}
		if len(a.Input) != dims[a.Kind] || slices.ContainsFunc(a.Input, func(n int64) bool { return n < 1 }) {
			c.problem(at("source", "architecture", "input"), "input %v: want %d sizes of at least 1", a.Input, dims[a.Kind])
		}
		if encoder := a.Kind == ArchitectureEncoder; encoder != (a.Heads > 0) || !encoder && a.Norm != "" {
			c.problem(at("source", "architecture", "heads"),
				"heads %d, norm %q: an encoder has at least one head of attention, and no other network has heads or norm", a.Heads, a.Norm)
		}
		if len(a.Layers) == 0 {
			c.problem(at("source", "architecture", "layers"), "layers is empty: want words and names of weights, in order")
		}
	}
}

// exists checks that a path leads to a file in the folder of the spec, or to a folder there.
// Opening it later repeats the check.
func (c checker) exists(p Path, folder bool, place ...any) {
	if p.Written == "" {
		return // a missing key is reported where it is required
	}
	c.report(c.Files.Check(p.Written, folder), place...)
}

func (c checker) checkCases() {
	recorded, generated := c.Cases.Path.Written != "", c.Cases.Generate != 0 || c.Cases.Seed != 0
	switch {
	case recorded && generated:
		c.problem(at("cases"), "cases has both path and generate: want recorded cases or generated ones")
	case !recorded && (c.Cases.Generate < 1 || c.Cases.Generate > maxGenerated):
		c.problem(at("cases", "generate"),
			"cases are missing: want a folder, or {generate: N, seed: S} with N from 1 to %d", maxGenerated)
	case !recorded && c.Cases.Labels != "":
		c.problem(at("cases", "labels"), "generated cases have no labels: remove the key, or record cases")
	}
	if recorded && len(c.Cases.Inputs) > 0 {
		c.problem(at("cases", "inputs"), "recorded cases have values already: remove the key")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Cases.Inputs)) {
		c.checkDraw(at("cases", "inputs", name), c.Cases.Inputs[name])
	}
	c.existsFolder(c.Cases.Path, "cases", "path")
}

// checkDraw checks what the values of a generated input are drawn from.
func (c checker) checkDraw(place []any, d Draw) {
	bounded := d.Min != nil && d.Max != nil
	switch {
	case (d.Min != nil) != (d.Max != nil), bounded == (len(d.Values) > 0):
		c.problem(place, "want min and max, or values")
	case bounded && *d.Min > *d.Max:
		c.problem(place, "min %v is above max %v", *d.Min, *d.Max)
	}
}

// existsFolder checks that a path leads to a folder of cases.
func (c checker) existsFolder(p Path, place ...any) {
	switch strings.ToLower(path.Ext(p.Written)) {
	case ".npz", ".safetensors":
		if c.Files.Check(p.Written, false) == nil {
			c.problem(place, "%s: want the folder that it is in: all .npz and .safetensors files of a folder are read",
				p.Written)
			return
		}
	case CSV, Parquet:
		if c.Files.Check(p.Written, false) == nil {
			c.problem(place, "%s: want a folder of .npz or .safetensors files: %s", p.Written, FromTable(p.Written))
			return
		}
	}
	c.exists(p, true, place...)
}

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

func (c checker) checkLimits() {
	c.oneOf(at("limits", "preset"), "preset", cmp.Or(c.Limits.Preset, validators.PresetDefault), validators.Presets(), nil)
	for _, output := range slices.Sorted(maps.Keys(c.Limits.Outputs)) {
		c.report(c.Limits.Outputs[output].check(), "limits", "outputs", output)
	}
	for _, precision := range slices.Sorted(maps.Keys(c.Limits.Precisions)) {
		c.oneOf(at("limits", "precisions", precision), "precision of a variant", precision, c.tried(), nil)
		outputs := c.Limits.Precisions[precision].Outputs
		for _, output := range slices.Sorted(maps.Keys(outputs)) {
			c.report(outputs[output].check(), "limits", "precisions", precision, "outputs", output)
		}
	}
	c.report(c.LimitOverrides().Latency.Validate(), "limits", "latency")
	if l := c.Limits.Consistency; l != nil {
		c.oneOf(at("limits", "consistency", "jitter"), "jitter", cmp.Or(l.Jitter, validators.JitterNone),
			[]string{validators.JitterNone, validators.JitterLimits}, nil)
		if *l == (Consistency{}) {
			c.problem(at("limits", "consistency"), "consistency asks for nothing: want jitter: none or required: true")
		}
	}
	if c.Limits.MinCases < 0 {
		c.problem(at("limits", "min_cases"), "min_cases %d: want at least 1", c.Limits.MinCases)
	}
	if level := c.Limits.Confidence; level != nil && !(*level > 0.5 && *level < 1) {
		c.problem(at("limits", "confidence"), "confidence %v: want more than 50%% and less than 100%%", float64(*level))
	}
	if c.Limits.Accuracy != nil {
		c.checkAccuracy(*c.Limits.Accuracy)
	}
}

// checkKinds checks the kinds of outputs. Whether an output can be of its kind is seen when the
// model is read.
func (c checker) checkKinds() {
	var kinds []string
	for _, kind := range validators.Kinds() {
		kinds = append(kinds, string(kind))
	}
	for _, output := range slices.Sorted(maps.Keys(c.Outputs)) {
		if said := c.Outputs[output]; said.Kind != "" || said.Labels.none() {
			c.oneOf(at("outputs", output, "kind"), "kind", said.Kind, kinds, nil)
		}
	}
}

// checkNames checks that the files with names exist. What is in them is read with the model.
func (c checker) checkNames() {
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		if c.Inputs[name].Features.none() {
			c.problem(at("inputs", name), "input %q: want features: the names of its features", name)
		}
		c.exists(c.Inputs[name].Features.File, false, "inputs", name, "features")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		c.exists(c.Outputs[name].Labels.File, false, "outputs", name, "labels")
	}
}

func (c checker) checkAccuracy(a Accuracy) {
	metrics := slices.DeleteFunc(validators.Metrics(), func(name string) bool { return name == validators.MetricProgramLower })
	if c.oneOf(at("limits", "accuracy", "metric"), "accuracy metric", a.Metric, metrics, nil) && c.checkProgram(a) {
		said := a.validators()
		if said.ByProgram() {
			said.Program = unread
		}
		said.Relative = cmp.Or(said.Relative, validators.PresetRelative(c.Limits.Preset))
		c.report(said.Validate(), "limits", "accuracy")
	}
	if c.Cases.Labels == "" {
		c.problem(at("limits", "accuracy"),
			"accuracy needs right answers: name the tensor that holds them in cases: {path: FOLDER, labels: NAME}")
	}
}

// unread stands for the digest of a program that was not read yet.
const unread = registry.Digest("sha256:0000000000000000000000000000000000000000000000000000000000000000")

// checkProgram checks that a program is there where the metric is one, and only there.
func (c checker) checkProgram(a Accuracy) bool {
	named := a.Program.Written != ""
	switch {
	case a.Metric == validators.MetricProgram && !named:
		c.problem(at("limits", "accuracy", "metric"), "metric program needs the program: add program: score.py, a file in the folder of this spec")
	case a.Metric != validators.MetricProgram && named:
		c.problem(at("limits", "accuracy", "program"), "%s is computed without a program: want metric: program", a.Metric)
	case a.Metric != validators.MetricProgram && a.Lower:
		c.problem(at("limits", "accuracy", "lower"), "lower is about metric program: leave it out")
	default:
		c.exists(a.Program, false, "limits", "accuracy", "program")
		return true
	}
	return false
}
