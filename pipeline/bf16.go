package pipeline

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// hintBF16 adds to the failures of engines, in their order, that the runtime computes fp32 in bf16 on this processor, and
// what keeps it from that.
func (v verification) hintBF16(failures []error) {
	has := func(feature string) bool { return slices.Contains(v.node.CPU.Features, feature) }
	if !has("avx512_bf16") && !has("amx_bf16") {
		return
	}
	for i, c := range v.candidates {
		numbers, _ := registry.NumberFormat(c.engine.Precision)
		option, value := c.tool.Profile.KeepsFP32[0], c.tool.Profile.KeepsFP32[1]
		if option == "" || numbers != validators.PrecisionFP32 || !registry.HasCode(failures[i], registry.CodeLimit) {
			continue
		}
		if load := c.engine.Load; load != nil && load.Options[option] != "" {
			continue
		}
		failures[i] = registry.WithHint(failures[i],
			"%s: by itself, %s computes fp32 in bf16 on this processor: "+
				"write load: {options: {%s: %s}, required: true} in its target to keep fp32 (docs/toolchains/%s.md)",
			c.engine.Label(), c.tool.Profile.Name, option, value, c.tool.Profile.Name)
	}
}
