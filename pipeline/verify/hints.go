package verify

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// hintBF16 adds to the failures of engines, in their order, that the runtime computes fp32 in bf16 on this processor, and
// what keeps it from that.
func hintBF16(v Session, failures []error) {
	has := func(feature string) bool { return slices.Contains(v.Node.CPU.Features, feature) }
	if !has("avx512_bf16") && !has("amx_bf16") {
		return
	}
	for i, c := range v.candidates {
		numbers, _ := artifact.NumberFormat(c.Engine.Precision)
		option, value := c.Tool.Profile.KeepsFP32[0], c.Tool.Profile.KeepsFP32[1]
		if option == "" || numbers != validators.PrecisionFP32 || !registry.HasCode(failures[i], registry.CodeLimit) {
			continue
		}
		if load := c.Engine.Load; load != nil && load.Options[option] != "" {
			continue
		}
		failures[i] = remedy.WithHint(failures[i], c.Engine.Label(),
			fmt.Sprintf("by itself, %s computes fp32 in bf16 on this processor", c.Tool.Profile.Name),
			fmt.Sprintf("write load: {options: {%s: %s}, required: true} in the target %s to keep fp32 (docs/toolchains/%s.md)",
				option, value, c.Engine.Target.Name, c.Tool.Profile.Name))
	}
}

// hintThreads adds to the failures of engines, in their order, that threads of some runtimes wait for one another without
// sleeping, so that a machine that does other work runs them many times slower, and what keeps it from that.
func hintThreads(v Session, engines []VerifiedEngine, failures []error) {
	for i, c := range v.candidates {
		profile, option := c.Tool.Profile, c.Tool.Profile.Spinning
		if failures[i] == nil || option == "" || !engines[i].late {
			continue
		}
		if load := c.Engine.Load; load != nil && load.Options[option] != "" {
			continue
		}
		failures[i] = remedy.WithHint(failures[i], c.Engine.Label(),
			fmt.Sprintf("%s takes many times as long on a machine that does other work", profile.Name),
			fmt.Sprintf("write load: {options: {%s: 1}} in the target %s (docs/toolchains/%s.md)", option, c.Engine.Target.Name, profile.Name))
	}
}

// hintHalf adds to the failures of fp16 engines, in their order, how to find what float16 does not hold.
func hintHalf(v Session, failures []error) {
	for i, c := range v.candidates {
		numbers, _ := artifact.NumberFormat(c.Engine.Precision)
		if numbers != validators.PrecisionFP16 || !registry.HasCode(failures[i], registry.CodeLimit) {
			continue
		}
		failures[i] = remedy.WithHint(failures[i], c.Engine.Label(), fmt.Sprintf("variant %s: float16 ends at 65504, and has 11 bits", c.Engine.Variant),
			"mlpromote bisect "+remedy.RefMark+remedy.EngineMark+" finds the nodes with numbers that it does not hold, "+
				"which can stay in float32: quantize: {method: fp16, exclude: [NODE, ...]}")
	}
}
