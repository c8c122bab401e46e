package plan

import (
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// The names that quantizers have for the methods of a spec.
const (
	MethodStatic   = "static-int8"
	MethodDynamic  = "dynamic-int8"
	MethodWeights  = "weights-int4"
	MethodWeights8 = "weights-int8"
	MethodFP16     = "fp16"
)

// planQuantize is everything that decides what the quantizer makes: what was asked for,
// and what the target, the limits and the cases say where that leaves something out.
func planQuantize(requested Requested, in Inputs) map[string]any {
	if requested.Quantize == nil {
		return nil
	}
	options := make(map[string]any)
	switch method := requested.Quantize["method"]; {
	case method == MethodStatic && requested.Quantizer != spec.ToolNNCF:
		options["observer"] = spec.ObserverMinMax
		fallthrough
	case method == MethodStatic, method == MethodDynamic:
		options["reduce_range"] = Saturates(requested.Target)
	}
	maps.Copy(options, requested.Quantize)
	if options["accuracy_aware"] == true {
		options["labels"], options["max_drop"] = in.Cases.Record.Labels, in.Limits.Accuracy.Drop.Max
		options["output"], _ = in.Interface.ScoredOutput(true)
	}
	return options
}

// checkCalibrated wants of a variant that a compiler quantizes by itself what such a compiler does: eight bits, and
// the least and greatest values of the calibration data.
func checkCalibrated(requested Requested) error {
	asked := maps.Clone(requested.Quantize)
	observer, _ := asked["observer"].(string)
	plain := requested.Quantizer == ONNXRuntime && asked["method"] == MethodStatic && (observer == "" || observer == spec.ObserverMinMax)
	for _, name := range []string{"method", "observer", "per_channel"} { // such a compiler has a scale for each channel anyway
		delete(asked, name)
	}
	if plain && len(asked) == 0 {
		return nil
	}
	form := requested.Toolchain
	if requested.Form != "" {
		form = "form " + requested.Form + " of " + form
	}
	return registry.Errorf(registry.CodeInvalid,
		"target %s, variant %s: %s quantizes by itself, from calibration: want variants with quantize: {method: static}, without another tool, observer or key",
		requested.Target.Name, requested.Variant, form)
}

// Saturates reports whether some machine of the target adds two products of uint8 and
// int8 in 16 bits, which overflow: x86 without VNNI. There weights lose a bit, so that the
// sums fit. Arm and accelerators add in 32 bits.
func Saturates(t artifact.Target) bool {
	if t.Accelerator != nil || t.CPU.Arch == "arm64" {
		return false
	}
	return !slices.Contains(t.CPU.Features, "avx512_vnni") && !slices.Contains(t.CPU.Features, "avx_vnni")
}

// ForQuantizer returns the inputs of a quantizer: the model, and calibration and cases if its options
// need them.
func (in Inputs) ForQuantizer(options map[string]any) []toolchain.Input {
	inputs := slices.Clone(in.Model)
	if _, tolerant := options["atol"]; tolerant || options["method"] == MethodStatic {
		inputs = append(inputs, in.Calibration.Files...)
	}
	if options["accuracy_aware"] == true {
		inputs = append(inputs, in.Cases.Engines()...)
	}
	return inputs
}

// RangesName returns the name of an engine's table of ranges among the tuning records. It depends on
// all that decides the table, except the processor. It is empty if the engine has no such table.
func (p Plan) RangesName(e Engine, model []toolchain.Input) (string, error) {
	if e.Quantizer == nil || e.Quantizer.Name != ONNXRuntime || e.Quantize["method"] != MethodStatic || p.Calibration == nil {
		return "", nil
	}
	options := maps.Clone(e.Quantize)
	for _, weights := range []string{"method", "reduce_range", "per_channel"} { // say nothing of activations
		delete(options, weights)
	}
	key, err := registry.CanonicalDigest(struct {
		Model       []File             `json:"model"`
		Calibration []File             `json:"calibration"`
		Options     map[string]any     `json:"options"`
		Tool        artifact.Toolchain `json:"tool"`
	}{Files(model), p.Calibration.Files, options, artifact.Toolchain{Name: e.Quantizer.Name,
		Version: e.Quantizer.Version}})
	if err != nil {
		return "", err
	}
	return ONNXRuntime + "/ranges-" + key.Encoded()[:12] + ".json", nil
}
