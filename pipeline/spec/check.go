package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators"
)

// maxCores bounds what a step may be given.
const maxCores = 4096

// maxAccept bounds the reason, which every engine's provenance repeats.
const maxAccept = 1000

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
			c.problem(at("limits", "consistency"), "consistency asks for nothing: want jitter: none, required: true or rare: 500")
		}
		if l.Rare < 0 || l.Rare == 1 || l.Rare > evidence.MostRare {
			c.problem(at("limits", "consistency", "rare"), "rare %d: want 2 to %d", l.Rare, evidence.MostRare)
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

// checkBudgets checks that budgets are of toolchains that there are.
func (c checker) checkBudgets() {
	known := slices.Concat(toolchains.Names(func(toolchains.Toolchain) bool { return true }), c.others)
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		c.oneOf(at("budgets", name), "toolchain", name, known, nil)
		b := c.Budgets[name]
		if b.Cores < 0 || b.Cores > maxCores {
			c.problem(at("budgets", name, "cores"), "%d cores: want 1 to %d", b.Cores, maxCores)
		}
		if b.GPUs < 0 || b.GPUs > maxCores {
			c.problem(at("budgets", name, "gpus"), "%d accelerators: want 1 to %d", b.GPUs, maxCores)
		}
	}
}

func (c checker) checkReference() {
	if c.Reference == nil {
		return
	}
	if text := c.Reference.Accept; strings.TrimSpace(text) == "" || len(text) > maxAccept {
		c.problem(at("reference", "accept"), "found a text of %d bytes: want the reason, in at most %d", len(text), maxAccept)
	}
}
