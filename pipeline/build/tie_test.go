package build

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// An engine that says of itself something else than was asked for is not built.
func TestCompareTied(t *testing.T) {
	t.Parallel()
	blob := plan.Engine{Toolchain: artifact.Toolchain{Version: "2026.4.1"}, Compile: map[string]any{"isa": "AVX512_CORE"}}
	local := plan.Engine{Compile: map[string]any{"device": "local", "cpu": "x86-64-v3"}}
	graph := func(c artifact.Constraint) plan.Engine {
		return plan.Engine{Target: artifact.Target{Name: "x", Runtimes: map[string]artifact.Constraint{"onnxruntime": c}}}
	}
	llvm := toolchain.Profile{Name: "iree", Devices: map[string]string{"llvm-cpu": "local", "cuda": "cuda", "rocm": "hip"}}
	plain, graphs := toolchain.Profile{Name: "openvino"}, toolchain.Profile{Name: "onnxruntime", ONNXRuntime: true}
	of21 := tie.Tie{ONNXRuntime: onnx.Need{Version: "1.18", Because: "operator set 21"}}
	cuda := plan.Engine{Compile: map[string]any{"device": "cuda", "arch": "sm_80"}}
	gpu := func(driver, compatibility string) plan.Engine {
		e := cuda
		e.Target = artifact.Target{Name: "x", Accelerator: &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}, Compatibility: artifact.Compatibility(compatibility)}
		if driver != "" {
			e.Target.Accelerator.Driver = &artifact.Constraint{Min: driver}
		}
		return e
	}
	ptx := tie.Tie{Backend: "cuda", Arch: "sm_80", PTX: "8.4", Driver: "550"}
	for name, c := range map[string]struct {
		engine  plan.Engine
		profile toolchain.Profile
		tie     tie.Tie
		want    string // part of the error; empty for none
	}{
		"as asked":                    {blob, plain, tie.Tie{Runtime: "2026.4.1", Instructions: "AVX512_CORE"}, ""},
		"fewer instructions":          {blob, plain, tie.Tie{Runtime: "2026.4.1", Instructions: "AVX2"}, "instruction set AVX2, and target"},
		"another runtime":             {blob, plain, tie.Tie{Runtime: "2026.4.0", Instructions: "AVX512_CORE"}, "runtime version 2026.4.0"},
		"a CPU as asked":              {local, llvm, tie.Tie{Backend: "llvm-cpu", Arch: "x86-64-v3"}, ""},
		"another CPU":                 {local, llvm, tie.Tie{Backend: "llvm-cpu", Arch: "x86-64-v4"}, "architecture x86-64-v4"},
		"a device as asked":           {cuda, llvm, tie.Tie{Backend: "cuda", Arch: "sm_80"}, ""},
		"code for a later processor":  {cuda, llvm, tie.Tie{Backend: "cuda", Arch: "sm_80", Host: "x86-64-v2"}, "architecture x86-64-v2"},
		"another device":              {cuda, llvm, tie.Tie{Backend: "rocm", Arch: "gfx942"}, "device hip"},
		"a driver that is new enough": {gpu("550", "version-compatible"), llvm, ptx, ""},
		"an older driver":             {gpu("545.23", ""), llvm, ptx, "PTX 8.4, which NVIDIA's drivers compile from 550 on, and target x lets in driver >= 545.23"},
		"any driver":                  {gpu("", ""), llvm, ptx, `lets in any driver: ask for accelerator.driver "550"`},
		"code for one device":         {gpu("550", "version-compatible"), llvm, tie.Tie{Backend: "cuda", Arch: "sm_80"}, "no PTX, so it runs on sm_80 alone"},
		"code for that device":        {gpu("", ""), llvm, tie.Tie{Backend: "cuda", Arch: "sm_80"}, ""},
		"the oldest that reads it":    {graph(artifact.Constraint{Min: "1.18.0"}), graphs, of21, ""},
		"an older one":                {graph(artifact.Constraint{Min: "1.17.3"}), graphs, of21, "operator set 21, which ONNX Runtime reads from 1.18 on, and target x lets in onnxruntime >= 1.17.3"},
		"exactly an older one":        {graph(artifact.Constraint{Exact: "1.17"}), graphs, of21, "lets in onnxruntime 1.17"},
		"any up to one":               {graph(artifact.Constraint{Below: "2"}), graphs, of21, "lets in onnxruntime < 2"},
		"no runtime asked for":        {plan.Engine{Target: artifact.Target{Name: "x"}}, graphs, of21, "from 1.18 on"},
		"a runtime of another kind":   {graph(artifact.Constraint{Min: "1.0"}), plain, of21, ""},
		"nothing that says more":      {cuda, llvm, tie.Tie{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compareTied(c.engine, c.profile, c.tie)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
