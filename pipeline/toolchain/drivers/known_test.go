package drivers_test

import (
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// A target that IREE cannot compile for is refused before anything is built, with what it can compile for.
func TestIREECompilesFor(t *testing.T) {
	t.Parallel()
	iree, err := drivers.Find("iree")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		vendor, arch, device, says string
	}{
		"nvidia":                        {"nvidia", "sm_89", "cuda", ""},
		"amd":                           {"amd", "gfx942", "hip", ""},
		"an arch that it does not have": {"nvidia", "sm_90", "", `with one of the archs sm_60, sm_61, `},
		"a family":                      {"nvidia", "ada", "", `not "ada"`},
		"no arch":                       {"amd", "", "", "with one of the archs gfx908, "},
		"of the other vendor":           {"amd", "sm_80", "", `not "sm_80"`},
		"another vendor":                {"intel", "xe", "", `vendor nvidia or amd, not "intel"`},
	} {
		target := artifact.Target{Name: "x", CPU: artifact.TargetCPU{Arch: "amd64"}, Accelerator: &artifact.TargetAccelerator{Vendor: c.vendor, Arch: c.arch}}
		options, err := iree.Profile.CompileOptions(target, "fp32")
		switch {
		case c.says == "" && (err != nil || options["device"] != c.device || options["arch"] != c.arch):
			t.Errorf("%s: options %v, error %v, want device %s and arch %s", name, options, err, c.device, c.arch)
		case c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
	}
}

// Toolchains that compile for devices without an architecture name the device, or refuse it.
func TestDevicesOfOtherToolchains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		toolchain, vendor string // "" for a processor
		device, says      string
	}{
		"XLA for a processor":       {"xla", "", "", ""},
		"XLA for a GPU":             {"xla", "nvidia", "cuda", ""},
		"XLA for a TPU":             {"xla", "google", "tpu", ""},
		"XLA for another":           {"xla", "amd", "", "vendor nvidia or google"},
		"llama.cpp for a processor": {"llama-cpp", "", "", ""},
		"llama.cpp for a GPU":       {"llama-cpp", "nvidia", "", "llama-cpp makes engines for processors"},
	} {
		source, err := drivers.Find(c.toolchain)
		if err != nil {
			t.Fatal(err)
		}
		target := artifact.Target{Name: "x", CPU: artifact.TargetCPU{Arch: "amd64"}}
		if c.vendor != "" {
			target.Accelerator = &artifact.TargetAccelerator{Vendor: c.vendor}
		}
		options, err := source.Profile.CompileOptions(target, "fp32")
		device, _ := options["device"].(string)
		switch {
		case c.says == "" && (err != nil || device != c.device):
			t.Errorf("%s: options %v, error %v, want device %q", name, options, err, c.device)
		case c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
	}
}

// An engine of torch-inductor for a GPU has code for the processor beside it: for machines like the one that builds, and for the level of
// the target.
func TestInductorGPUMachines(t *testing.T) {
	t.Parallel()
	source, err := drivers.Find("torch-inductor")
	if err != nil {
		t.Fatal(err)
	}
	for machine, ok := range map[[2]string]bool{{"linux", "amd64"}: true, {"linux", "arm64"}: false, {"windows", "amd64"}: false, {"darwin", "arm64"}: false} {
		target := artifact.Target{Name: "x", OS: machine[0], CPU: artifact.TargetCPU{Arch: machine[1]},
			Accelerator: &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}}
		if options, err := source.Profile.CompileOptions(target, "fp32"); (err == nil) != ok || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%v: error %v, want none: %t", machine, err, ok)
		} else if ok && options["cpu"] != "x86-64" {
			t.Errorf("%v: options %v, want code for every processor", machine, options)
		}
		if !ok {
			continue
		}
		target.CPU.Level = "v3"
		if options, err := source.Profile.CompileOptions(target, "fp32"); err != nil || options["cpu"] != "x86-64-v3" {
			t.Errorf("options %v, error %v; want code for v3", options, err)
		}
	}
}

// A spec keeps the numbers of cases for exactly those formats whose drivers hand them to the framework.
func TestDriversThatTakeAnyNumbers(t *testing.T) {
	t.Parallel()
	for _, format := range spec.Formats() {
		if format == spec.FormatONNX { // which ONNX Runtime runs, that takes one type
			if spec.TakesAnyNumbers(format) {
				t.Error("onnx takes any numbers")
			}
			continue
		}
		name, err := drivers.Importer(format)
		if err != nil {
			t.Fatal(err)
		}
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		trees := regexp.MustCompile(`(?m)^(import|from) trees\b`)
		takes := false
		for file, code := range source.Code {
			own := file != "trees.py" && file != "running.py"
			takes = takes || own && (trees.Match(code) || strings.Contains(string(code), "any_numbers = True"))
		}
		if takes != spec.TakesAnyNumbers(format) {
			t.Errorf("%s: the driver of %s takes any numbers: %v, and the spec says %v", format, name, takes, !takes)
		}
	}
}
