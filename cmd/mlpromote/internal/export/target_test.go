package export

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/yaml"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

func h100Target() artifact.Target {
	return artifact.Target{
		V: 1, Name: "h100_tp2", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v3"},
		Accelerator: &artifact.TargetAccelerator{
			Vendor: "nvidia", Product: "NVIDIA-H100-80GB-HBM3", Arch: "sm_90", Count: 2, MemoryMiB: 81559, Driver: &artifact.Constraint{Min: "580.65.06", Below: "590"},
		},
		Runtimes: map[string]artifact.Constraint{"tensorrt": {Exact: "10.9.0.34"}},
	}
}

// What the API server reads is what was meant, without a field that it would drop.
func TestTargetAsNodeAffinity(t *testing.T) {
	t.Parallel()
	out, err := Target(h100Target(), ForNodeAffinity, true)
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(out.YAML), &d); err != nil {
		t.Fatalf("%v\n%s", err, out.YAML)
	}
	selector, err := nodeaffinity.NewNodeSelector(d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.YAML)
	}
	var n corev1.Node
	n.Labels = map[string]string{
		"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "feature.node.kubernetes.io/cpu-cpuid.X86_64_V3": "true",
		"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.replicas": "1",
		"nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0", "nvidia.com/mig.strategy": "none",
		"nvidia.com/cuda.driver-version.major": "580", "nvidia.com/cuda.driver-version.minor": "65", "nvidia.com/cuda.driver-version.revision": "06",
	}
	if !selector.Match(&n) {
		t.Errorf("a node with two H100 is refused:\n%s", out.YAML)
	}
	n.Labels["nvidia.com/cuda.driver-version.revision"] = "05"
	if selector.Match(&n) {
		t.Errorf("a node with an older driver is admitted:\n%s", out.YAML)
	}
	if !strings.Contains(out.YAML, "# Not expressed: runtimes.tensorrt 10.9.0.34\n") || len(out.Unexpressed) != 1 {
		t.Errorf("unexpressed %v, in\n%s", out.Unexpressed, out.YAML)
	}
	if !strings.Contains(out.YAML, "\n# In the container: resources: {limits: {nvidia.com/gpu: 2}}\n") {
		t.Errorf("no remark on the device plugin:\n%s", out.YAML)
	}
	if out, err = Target(h100Target(), ForNodeAffinity, false); err != nil || strings.Contains(out.YAML, "nvidia") {
		t.Errorf("without an accelerator: %v\n%s", err, out.YAML)
	}
}

func TestTargetAsResourceClaimTemplate(t *testing.T) {
	t.Parallel()
	expressions := func(out ExportedTarget) (resourcev1.DeviceRequest, []string) {
		var c resourcev1.ResourceClaimTemplate
		if err := yaml.UnmarshalStrict([]byte(out.YAML), &c); err != nil {
			t.Fatalf("%v\n%s", err, out.YAML)
		}
		if c.Kind != "ResourceClaimTemplate" || c.APIVersion != resourcev1.SchemeGroupVersion.String() || len(c.Spec.Spec.Devices.Requests) != 1 {
			t.Fatal(out.YAML)
		}
		var all []string
		for _, s := range c.Spec.Spec.Devices.Requests[0].Exactly.Selectors {
			all = append(all, s.CEL.Expression)
		}
		return c.Spec.Spec.Devices.Requests[0], all
	}
	out, err := Target(h100Target(), ForResourceClaimTemplate, true)
	if err != nil {
		t.Fatal(err)
	}
	request, got := expressions(out)
	const attributes = `cel.bind(of, device.attributes["gpu.nvidia.com"], `
	want := []string{
		attributes + `has(of.type) && of.type == "gpu")`,
		attributes + `has(of.productName) && of.productName.replace(" ", "-") == "NVIDIA-H100-80GB-HBM3")`,
		attributes + `has(of.cudaComputeCapability) && of.cudaComputeCapability.compareTo(semver("9.0.0")) == 0)`,
		attributes + `has(of.driverVersion) && of.driverVersion.compareTo(semver("580.65.6")) >= 0 && of.driverVersion.compareTo(semver("590.0.0")) < 0)`,
		`cel.bind(of, device.capacity["gpu.nvidia.com"], has(of.memory) && of.memory.compareTo(quantity("81559Mi")) >= 0)`,
	}
	if !slices.Equal(got, want) || request.Exactly.Count != 2 || request.Exactly.DeviceClassName != "gpu.nvidia.com" || !strings.Contains(out.YAML, "\n  name: h100-tp2\n") {
		t.Errorf("%+v\n%s", request, out.YAML)
	}
	mig := h100Target()
	mig.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", MIG: "1g.10gb", Arch: "sm_80"}
	mig.Compatibility = artifact.CompatibilityVersionCompatible
	if out, err = Target(mig, ForResourceClaimTemplate, true); err != nil {
		t.Fatal(err)
	}
	request, got = expressions(out)
	want = []string{
		attributes + `has(of.type) && of.type == "mig")`, attributes + `has(of.profile) && of.profile == "1g.10gb")`,
		attributes + `has(of.cudaComputeCapability) && of.cudaComputeCapability.compareTo(semver("8.0.0")) >= 0)`,
	}
	if !slices.Equal(got, want) || request.Exactly.DeviceClassName != "mig.nvidia.com" {
		t.Errorf("%+v\n%s", request, out.YAML)
	}
	amd := h100Target()
	amd.Accelerator.Vendor, amd.Accelerator.Product, amd.Accelerator.Arch = "amd", "it's\n\"50%s\"", "gfx942"
	if out, err = Target(amd, ForResourceClaimTemplate, true); err != nil {
		t.Fatal(err)
	}
	if _, got = expressions(out); len(got) != 4 || !strings.Contains(got[1], `== "it's\n\"50%s\"")`) || !strings.Contains(out.YAML, "accelerator.arch gfx942") {
		t.Errorf("%q\n%s", got, out.YAML)
	}
	intel := h100Target()
	intel.Accelerator = &artifact.TargetAccelerator{Vendor: "intel"}
	if out, err = Target(intel, ForResourceClaimTemplate, true); err != nil {
		t.Fatal(err)
	}
	if request, got = expressions(out); len(got) != 0 || request.Exactly.DeviceClassName != "gpu.intel.com" {
		t.Errorf("%+v\n%s", request, out.YAML)
	}
}

func TestTargetRefuses(t *testing.T) {
	t.Parallel()
	processor, unknown, slice := h100Target(), h100Target(), h100Target()
	processor.Accelerator = nil
	unknown.Accelerator = &artifact.TargetAccelerator{Vendor: "tpu"}
	slice.Accelerator = &artifact.TargetAccelerator{Vendor: "amd", MIG: "1g.10gb"}
	for says, c := range map[string]struct {
		target artifact.Target
		form   string
	}{
		"needs no accelerator": {processor, ForResourceClaimTemplate}, `accelerators of "tpu"`: {unknown, ForResourceClaimTemplate},
		"no MIG profiles": {slice, ForResourceClaimTemplate}, "want node-affinity": {h100Target(), "toleration"}, "no known version": {artifact.Target{}, ForNodeAffinity},
	} {
		if out, err := Target(c.target, c.form, true); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n%s\nwant CodeInvalid: %s", err, out.YAML, says)
		}
	}
}

// An engine is chosen by its label, or needs none if there is one target.
func TestChooseTarget(t *testing.T) {
	t.Parallel()
	a, b := h100Target(), h100Target()
	b.Name = "l4"
	r := artifact.Release{Model: "m", Engines: []artifact.Engine{{Target: a, Variant: "fp16"}, {Target: a, Variant: "int8"}, {Target: b, Variant: "fp16"}}}
	if got, err := chooseTarget(r, "l4/fp16"); err != nil || got.Name != "l4" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := chooseTarget(artifact.Release{Engines: r.Engines[:2]}, ""); err != nil || got.Name != a.Name {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := chooseTarget(r, ""); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("%v, want CodeInvalid", err)
	}
	if _, err := chooseTarget(r, "l40/fp16"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("%v, want CodeNotFound", err)
	}
}
