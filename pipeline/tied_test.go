package pipeline

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// An engine that says of itself something else than was asked for is not built.
func TestCompareTied(t *testing.T) {
	t.Parallel()
	blob := PlannedEngine{Toolchain: registry.Toolchain{Version: "2026.4.1"}, Compile: map[string]any{"isa": "AVX512_CORE"}}
	local := PlannedEngine{Compile: map[string]any{"device": "local", "cpu": "x86-64-v3"}}
	cuda := PlannedEngine{Compile: map[string]any{"device": "cuda", "arch": "sm_80"}}
	for name, c := range map[string]struct {
		engine PlannedEngine
		tie    format.Tie
		want   string // part of the error; empty for none
	}{
		"as asked":               {blob, format.Tie{Runtime: "2026.4.1", Instructions: "AVX512_CORE"}, ""},
		"fewer instructions":     {blob, format.Tie{Runtime: "2026.4.1", Instructions: "AVX2"}, "instruction set AVX2, and target"},
		"another runtime":        {blob, format.Tie{Runtime: "2026.4.0", Instructions: "AVX512_CORE"}, "runtime version 2026.4.0"},
		"a CPU as asked":         {local, format.Tie{Backend: "llvm-cpu", Arch: "x86-64-v3"}, ""},
		"another CPU":            {local, format.Tie{Backend: "llvm-cpu", Arch: "x86-64-v4"}, "architecture x86-64-v4"},
		"a device as asked":      {cuda, format.Tie{Backend: "cuda", Arch: "sm_80"}, ""},
		"another device":         {cuda, format.Tie{Backend: "rocm", Arch: "gfx942"}, "device hip"},
		"nothing that says more": {cuda, format.Tie{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compareTied(c.engine, c.tie)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
