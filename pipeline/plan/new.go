package plan

import (
	"cmp"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// New decides the outputs of a build. tools has ONNX Runtime ([ONNXRuntime]) and every toolchain that a
// requested engine names. It is pure: equal arguments give equal plans.
func New(in Inputs, tools map[string]Tool) (Plan, error) {
	p := bare(in)
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		p.Drivers = append(p.Drivers, tools[name].Code...)
	}
	for _, requested := range in.Engines {
		for _, name := range requested.Tools() {
			if _, ok := tools[name]; !ok {
				return Plan{}, registry.Lastingf(registry.CodeUnavailable,
					"target %s asks for %s, which is not open", requested.Target.Name, name)
			}
		}
		if err := p.takesOperators(requested, tools[requested.Toolchain].Profile); err != nil {
			return Plan{}, err
		}
		if err := p.takesText(requested); err != nil {
			return Plan{}, err
		}
		engine, err := planEngine(requested, tools, in)
		if err != nil {
			return Plan{}, err
		}
		p.Engines = append(p.Engines, engine)
	}
	if err := p.setLimits(in); err != nil {
		return Plan{}, err
	}
	return p.finished()
}

// CheckLimits checks what [New] checks of a spec without its tools, so that a tool which is missing here does not hide a mistake
// in the limits. Errors: CodeInvalid.
func CheckLimits(in Inputs) error {
	p := bare(in)
	return p.setLimits(in)
}

// bare is a plan without what tools decide, and without limits.
func bare(in Inputs) Plan {
	p := Plan{
		Model: in.Name, Version: in.Version, Source: in.Model[0].Digest,
		ReferencePrecision: cmp.Or(in.Precision, validators.PrecisionFP32), Quantized: in.Quantized,
		Interface: in.Interface, Guessed: in.Guessed, Cases: setOf(in.Cases),
		Assets: Files(in.Assets), Operators: Files(in.Operators),
	}
	if p.Import = in.Import; p.Import != nil {
		p.Source = p.Import.Files[0].Digest
	}
	if len(in.Calibration.Files) > 0 {
		calibration := setOf(in.Calibration)
		p.Calibration = &calibration
	}
	return p
}

// setLimits sets the limits, which are for the precisions of all engines of the spec.
func (p *Plan) setLimits(in Inputs) error {
	var precisions []string
	for _, e := range slices.Concat(in.Engines, in.Others) {
		if !slices.Contains(precisions, e.Precision) {
			precisions = append(precisions, e.Precision)
		}
	}
	var err error
	if p.Limits, err = validators.ExpandPreset(in.Preset, in.Interface, precisions, in.Cases.Distinct(), in.Limits); err != nil {
		return err
	}
	if p.Limits.Accuracy != nil && in.Cases.Record.Labels == "" {
		return registry.Errorf(registry.CodeInvalid,
			"limits.accuracy asks for labels, and the cases have none: name their tensor in cases.labels, or leave out the limit or the preset that has it")
	}
	return p.Limits.Provable(in.Cases.Sample(in.Interface))
}

// InOrder puts the engines of a spec, as it lists them, into the order in which nodes get them.
func InOrder(listed []Requested) []Requested {
	return artifact.OrderEngines(listed, func(r Requested) artifact.Engine {
		return artifact.Engine{Target: r.Target, Toolchain: artifact.Toolchain{Name: r.Toolchain}}
	})
}

// finished is the plan with its digest.
func (p Plan) finished() (Plan, error) {
	p.Digest = ""
	var err error
	p.Digest, err = registry.CanonicalDigest(p)
	return p, err
}

// takesOperators refuses an engine whose toolchain cannot have the model's own operators.
func (p Plan) takesOperators(r Requested, tool toolchain.Profile) error {
	if len(p.Operators) == 0 || tool.Operators && r.Quantize == nil && !r.Compressed() {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid,
		"target %s, variant %s: a model with operators of its own is built by %s alone, and neither quantized nor compressed", r.Target.Name, r.Variant, ONNXRuntime)
}

// takesText refuses an engine whose toolchain cannot have the model's inputs of text.
func (p Plan) takesText(r Requested) error {
	input, ok := p.Interface.TakesText()
	if !ok || r.Toolchain == ONNXRuntime && r.Quantize == nil && len(r.Compress) == 0 {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid,
		"target %s, variant %s: input %q takes text: such a model is built by %s alone, and neither quantized nor compressed",
		r.Target.Name, r.Variant, input, ONNXRuntime),
		"for another toolchain, export the part of the model behind the encoding of text: its inputs are numbers")
}
