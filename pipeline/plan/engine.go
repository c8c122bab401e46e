package plan

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators"
)

func planEngine(requested Requested, tools map[string]Tool, in Inputs) (Engine, error) {
	t := tools[requested.Toolchain]
	tool := t.Identity
	if want := requested.ToolVersion; want != "" && tool.Version != want && !strings.HasPrefix(tool.Version, want+".") {
		return Engine{}, otherVersion(requested, tool)
	}
	e := Engine{
		Target: requested.Target, Variant: requested.Variant, Precision: requested.Precision,
		Toolchain: artifact.Toolchain{Name: tool.Name, Version: tool.Version, Lock: tool.Lock}, Load: requested.Load,
	}
	profile, err := t.Profile.In(requested.Form)
	if err != nil {
		return Engine{}, registry.Errorf(registry.CodeInvalid, "target %s: %w", requested.Target.Name, err)
	}
	if profile.Intermediate {
		return Engine{}, registry.Errorf(registry.CodeInvalid,
			"target %s: form %s of %s is no engine: only the compiler of a manifest takes it (compile: {from: ...})",
			requested.Target.Name, requested.Form, tool.Name)
	}
	if needs := requested.needs(in); profile.ONNXRuntime && !needs.Met(artifact.Constraint{Exact: tool.Version}) {
		return Engine{}, registry.Errorf(registry.CodeInvalid,
			"target %s: the model has %s, which ONNX Runtime reads from %s on, and %s is %s: export the model for an earlier one, or choose another toolchain",
			requested.Target.Name, needs.Because, needs.Version, tool.Name, tool.Version)
	}
	numbers, _ := artifact.NumberFormat(e.Precision)
	if e.Compile, err = profile.CompileOptions(e.Target, numbers); err != nil {
		return Engine{}, err
	}
	if e.From, err = compiledFrom(requested, profile, in); err != nil {
		return Engine{}, err
	}
	if err := e.planInside(requested, profile, in); err != nil {
		return Engine{}, err
	}
	e.Target.Accelerator = withDriver(e.Target, profile)
	e.planForm(requested.Form, profile, in)
	if err := e.planProviders(requested, profile); err != nil {
		return Engine{}, err
	}
	if e.Tuning, err = planTuning(requested, profile); err != nil {
		return Engine{}, err
	}
	if e.Target.Runtimes == nil {
		e.Target.Runtimes = map[string]artifact.Constraint{tool.Name: runtimeNeeds(profile, tool.Version)}
	}
	if e.Calibrated = profile.Calibrated; e.Calibrated {
		if err := checkCalibrated(requested); err != nil {
			return Engine{}, err
		}
	} else if e.Quantize = planQuantize(requested, in); e.Quantize != nil {
		by := tools[requested.Quantizer].Identity
		e.Quantizer = &artifact.Toolchain{Name: by.Name, Version: by.Version, Lock: by.Lock}
	}
	e.planCompress(requested, tools)
	e.Toolchain.Options, err = registry.CanonicalDigest(e.options())
	return e, err
}

// otherVersion refuses a version of a toolchain that is not the one that would make the engine.
func otherVersion(requested Requested, tool toolchain.Identity) error {
	err := registry.Errorf(registry.CodeInvalid,
		"target %s asks for %s %s, and this program has %s", requested.Target.Name, tool.Name, requested.ToolVersion, tool.Version)
	if _, ours := toolchains.Find(tool.Name); !ours {
		return registry.WithHint(err, "the manifest of %s finds %s: install the other version, or write version: %q (docs/how-to/upgrade.md)",
			tool.Name, tool.Version, tool.Version)
	}
	return registry.WithHint(err, "to build with %[1]s %[2]s, name a Python that has it: --python %[1]s=PATH, or toolchain: {name: %[1]s, python: PATH}; "+
		"else write version: %[3]q (docs/how-to/upgrade.md)", tool.Name, requested.ToolVersion, tool.Version)
}

// planForm tells the compiler which form to make, and sizes where it wants them.
func (e *Engine) planForm(form string, profile toolchain.Profile, in Inputs) {
	if e.Form = form; form != "" {
		e.Compile["form"] = form
	}
	if sizes := sizesOf(in.Interface); profile.Sizes && len(sizes) > 0 {
		e.Compile["sizes"] = sizes
	}
}

// sizesOf returns the ranges of symbolic dimensions in the form of a compiler's option.
func sizesOf(i validators.Interface) map[string]any {
	sizes := make(map[string]any, len(i.Dims))
	for symbol, r := range i.Dims {
		sizes[symbol] = []any{r.Min, r.Opt, r.Max}
	}
	return sizes
}

// planInside tells a compiler to quantize the source where it does that by itself.
func (e *Engine) planInside(requested Requested, profile toolchain.Profile, in Inputs) error {
	if requested.QuantizedInside == "" {
		return nil
	}
	if format := sourceFormat(in); !slices.Contains(profile.Quantizes, format) {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"target %s, variant %s: torchao quantizes a model in PyTorch while it is compiled, and %s does not do that with a source in the format %s",
			requested.Target.Name, requested.Variant, profile.Name, format),
			"quantize the ONNX reference with tool: onnxruntime or nncf, or compile a folder of transformers with torch-inductor")
	}
	e.Compile["quantize"] = requested.QuantizedInside
	return nil
}

// sourceFormat is the format of the source, as package spec names it.
func sourceFormat(in Inputs) string {
	if in.Import != nil {
		return in.Import.Format
	}
	return "onnx"
}

// FromSource is set if the compiler of an engine takes the source, not the ONNX reference.
const FromSource = "source"

// compiledFrom says what an engine is compiled of: the reference (""), or the source.
func compiledFrom(requested Requested, profile toolchain.Profile, in Inputs) (string, error) {
	if len(profile.Sources) == 0 {
		return "", nil
	}
	format := sourceFormat(in)
	if !slices.Contains(profile.Sources, format) {
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "target %s: %s compiles sources of the formats %s, and this one is %s",
			requested.Target.Name, profile.Name, strings.Join(profile.Sources, " and "), format),
			"export the model from its framework as one of these, or name a toolchain that compiles ONNX, such as %s or openvino", ONNXRuntime)
	}
	if requested.Quantize != nil || requested.Compressed() || requested.Student != nil {
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "target %s, variant %s: what quantizes or compresses a model writes ONNX, as students are, and %s compiles the source as it is",
			requested.Target.Name, requested.Variant, profile.Name),
			"list the variants of this target that are the source itself (variants: [fp32]), or quantize in the framework before the export")
	}
	return FromSource, nil
}

// withDriver is the accelerator of a target, with the oldest driver that loads the engines where the
// spec does not say one and the toolchain knows it.
func withDriver(t artifact.Target, profile toolchain.Profile) *artifact.TargetAccelerator {
	if t.Accelerator == nil || t.Accelerator.Driver != nil || profile.Driver == nil {
		return t.Accelerator
	}
	oldest := profile.Driver(t)
	if oldest == "" {
		return t.Accelerator
	}
	a := *t.Accelerator
	a.Driver = &artifact.Constraint{Min: oldest}
	return &a
}

// providerOptions are what is asked of providers, by their names.
func providerOptions(providers []artifact.Provider) map[string]map[string]string {
	asked := make(map[string]map[string]string)
	for _, p := range providers {
		if len(p.Options) > 0 {
			asked[p.Name] = p.Options
		}
	}
	return asked
}

// planTuning says which record an engine is to be compiled by; nil for none.
func planTuning(requested Requested, profile toolchain.Profile) (*Tuning, error) {
	if requested.Tuning == nil {
		return nil, nil
	}
	if profile.Tuning == "" {
		return nil, registry.Errorf(registry.CodeInvalid,
			"target %s: %s takes no tuning from a file: remove the key", requested.Target.Name, profile.Name)
	}
	in := *requested.Tuning
	in.Name = profile.Tuning
	return &Tuning{File: File{in.Name, in.Digest}, Input: in}, nil
}

// runtimeNeeds is which versions of the runtime load an engine that this version compiled.
func runtimeNeeds(p toolchain.Profile, version string) artifact.Constraint {
	if p.ExactRuntime {
		return artifact.Constraint{Exact: version}
	}
	return artifact.Constraint{Min: version}
}

// planProviders takes over the execution providers that are asked for, or those of the toolchain.
func (e *Engine) planProviders(requested Requested, profile toolchain.Profile) error {
	if e.Providers = requested.Providers; len(e.Providers) == 0 {
		e.Providers = profile.Providers
	} else if len(profile.Providers) == 0 {
		return registry.Errorf(registry.CodeInvalid,
			"target %s: %s has no execution providers: remove the key", requested.Target.Name, e.Toolchain.Name)
	}
	if asked := providerOptions(e.Providers); profile.CompilesWithProviders && len(asked) > 0 {
		e.Compile["provider_options"] = asked
	}
	return nil
}
