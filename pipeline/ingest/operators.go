package ingest

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// learnedDomain is the domain of operators for trees, linear models and what prepares their inputs.
const learnedDomain = "ai.onnx.ml."

// checkOperators refuses engines that the operators of the model exclude, before a toolchain is installed for them. Errors: CodeInvalid.
func (in *Inputs) checkOperators(model *onnx.Model) error {
	for _, r := range in.Engines {
		if r.Student != nil {
			continue
		}
		if err := checkLacks(r, model); err != nil {
			return err
		}
		if err := checkHalvedTrees(r, model); err != nil {
			return err
		}
	}
	return nil
}

// checkLacks refuses an engine of a toolchain that lacks operators of ai.onnx.ml.
func checkLacks(r plan.Requested, model *onnx.Model) error {
	tool, _ := toolchains.Find(r.Toolchain)
	var missing []string
	for _, operator := range tool.Lacks {
		if model.Ops[learnedDomain+operator] > 0 {
			missing = append(missing, learnedDomain+operator)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "target %s: %s lacks operators of the model: %s", r.Target.Name, r.Toolchain, strings.Join(missing, ", ")),
		"give this target toolchain: {name: %s}: it runs trees and linear models on processors; so does onnxruntime-web (docs/troubleshooting.md#trees-and-linear-models)", plan.ONNXRuntime)
}

// checkHalvedTrees refuses trees in half precision: the operators take float32 alone, and what is left around them has nothing to gain.
func checkHalvedTrees(r plan.Requested, model *onnx.Model) error {
	if r.Quantize["method"] != plan.MethodFP16 {
		return nil
	}
	for _, operator := range []string{"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"} {
		if model.Ops[learnedDomain+operator] > 0 {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "target %s, variant %s: no runtime computes trees in float16, and the model has %s%s",
				r.Target.Name, r.Variant, learnedDomain, operator),
				"leave the variant out: variants: [fp32] (docs/troubleshooting.md#trees-and-linear-models)")
		}
	}
	return nil
}
