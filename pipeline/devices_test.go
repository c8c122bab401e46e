package pipeline

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// A report lists the packages of a Python that mlpromote did not install, and of nothing else.
func TestHostPackages(t *testing.T) {
	t.Parallel()
	adopted := toolchain.Identity{Adopted: true, Lock: digest.FromString("packages"), Versions: map[string]string{"torch": "2.11"}}
	got := hostPackages(adopted)
	if got == nil || !reflect.DeepEqual(got.Packages, registry.NewDigestSet(adopted.Lock)) || !reflect.DeepEqual(got.Versions, adopted.Versions) {
		t.Errorf("got %+v, want the packages of %+v", got, adopted)
	}
	for name, change := range map[string]func(*toolchain.Identity){
		"of a lock file": func(i *toolchain.Identity) { i.Adopted = false },
		"of an image":    func(i *toolchain.Identity) { i.Image = "sha256:0" },
		"of a manifest":  func(i *toolchain.Identity) { i.Versions = nil },
	} {
		other := adopted
		change(&other)
		if got := hostPackages(other); got != nil {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

// A compiler that needs the device is run only on a machine that has it; the others cross-compile.
func TestDevices(t *testing.T) {
	t.Parallel()
	here := maker{worker: worker{}}
	here.node.Accelerators = []registry.NodeAccelerator{{Vendor: "nvidia", Arch: "sm_90"}, {Vendor: "amd", Arch: "gfx942"}}
	on := func(a *registry.TargetAccelerator) plan.Engine {
		return plan.Engine{Target: registry.Target{Name: "gpu", Accelerator: a}}
	}
	needs := toolchain.Profile{Name: "torch-inductor", NeedsDevice: true}
	for name, c := range map[string]struct {
		engine  plan.Engine
		profile toolchain.Profile
		want    []string
		refused bool
	}{
		"of a processor":          {on(nil), needs, nil, false},
		"compiled without":        {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), toolchain.Profile{}, nil, false},
		"here":                    {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}), needs, []string{"nvidia"}, false},
		"of another age":          {on(&registry.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), needs, nil, true},
		"of another manufacturer": {on(&registry.TargetAccelerator{Vendor: "amd", Arch: "sm_90"}), needs, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := here.devices(c.engine, c.profile)
			if !slices.Equal(got, c.want) || registry.HasCode(err, registry.CodeWrongNode) != c.refused || (err != nil) != c.refused {
				t.Errorf("got %q, %v; want %q, refused %t", got, err, c.want, c.refused)
			}
		})
	}
}

// Where a processor has bf16, a failed fp32 engine of a runtime that uses it by itself gets the option that keeps fp32.
func TestHintBF16(t *testing.T) {
	t.Parallel()
	failed := registry.Errorf(registry.CodeLimit, "too much noise")
	keeps := toolchain.Profile{Name: "openvino", KeepsFP32: [2]string{"PRECISION", "f32"}}
	for name, c := range map[string]struct {
		feature   string
		profile   toolchain.Profile
		precision string
		load      *registry.LoadProfile
		failure   error
		hinted    bool
	}{
		"fp32":                        {"avx512_bf16", keeps, "fp32", nil, failed, true},
		"fp32, by matrix products":    {"amx_bf16", keeps, "fp32", nil, failed, true},
		"with other options":          {"amx_bf16", keeps, "fp32", &registry.LoadProfile{Options: map[string]string{"THREADS": "1"}}, failed, true},
		"of a processor without bf16": {"avx512_vnni", keeps, "fp32", nil, failed, false},
		"of a runtime that keeps it":  {"avx512_bf16", toolchain.Profile{}, "fp32", nil, failed, false},
		"int8":                        {"avx512_bf16", keeps, "int8", nil, failed, false},
		"kept already":                {"avx512_bf16", keeps, "fp32", &registry.LoadProfile{Options: map[string]string{"PRECISION": "f32"}}, failed, false},
		"an engine that passes":       {"avx512_bf16", keeps, "fp32", nil, nil, false},
		"that failed otherwise":       {"avx512_bf16", keeps, "fp32", nil, registry.Errorf(registry.CodeInternal, "it crashed"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v verification
			v.candidates = []candidate{{engine: registry.Engine{Precision: c.precision, Load: c.load}}}
			v.candidates[0].tool.Profile = c.profile
			v.node.CPU.Features = []string{c.feature}
			failures := []error{c.failure}
			v.hintBF16(failures)
			hints := registry.Hints(failures[0])
			if hinted := strings.Contains(strings.Join(hints, "\n"), "load: {options: {PRECISION: f32}"); hinted != c.hinted {
				t.Errorf("hints %q, want one: %t", hints, c.hinted)
			}
		})
	}
}

// An engine of llama-cpp that ran out of time in a check gets the option with which it does not wait for its threads.
func TestHintThreads(t *testing.T) {
	t.Parallel()
	undecided := registry.Errorf(registry.CodeLimit, "is undecided")
	for name, c := range map[string]struct {
		option  string // of the runtime
		load    *registry.LoadProfile
		late    bool
		failure error
		hinted  bool
	}{
		"out of time":           {"n_threads", nil, true, undecided, true},
		"another option":        {"n_threads", &registry.LoadProfile{Options: map[string]string{"n_ubatch": "64"}}, true, undecided, true},
		"with the option":       {"n_threads", &registry.LoadProfile{Options: map[string]string{"n_threads": "1"}}, true, undecided, false},
		"another runtime":       {"", nil, true, undecided, false},
		"an engine that passes": {"n_threads", nil, true, nil, false},
		"another reason":        {"n_threads", nil, false, undecided, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v verification
			v.candidates = []candidate{{engine: registry.Engine{Load: c.load}}}
			v.candidates[0].tool.Profile.Spinning = c.option
			failures := []error{c.failure}
			v.hintThreads([]VerifiedEngine{{late: c.late}}, failures)
			if hinted := strings.Contains(strings.Join(registry.Hints(failures[0]), "\n"), "load: {options: {n_threads: 1}}"); hinted != c.hinted {
				t.Errorf("hints %q, want one: %t", registry.Hints(failures[0]), c.hinted)
			}
		})
	}
}
