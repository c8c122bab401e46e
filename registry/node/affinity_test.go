package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// admits asks the code of the scheduler.
func admits(t interface{ Fatalf(string, ...any) }, a node.Affinity, labels map[string]string) bool {
	var terms []corev1.NodeSelectorTerm
	for _, term := range a.Terms {
		var all []corev1.NodeSelectorRequirement
		for _, e := range term {
			all = append(all, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: e.Values})
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: all})
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms})
	if err != nil {
		t.Fatalf("%v: %v", a.Terms, err)
	}
	return selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}})
}

// unmet is the requirements that a node with labels does not meet by our own rules, but for the unexpressed ones.
func unmet(t interface{ Fatalf(string, ...any) }, target artifact.Target, a node.Affinity, labels map[string]string) []artifact.Mismatch {
	n, err := node.FromLabels(labels)
	if err != nil {
		t.Fatalf("%v: %v", labels, err)
	}
	return expressed(target, a).Match(n, n.Runtime())
}

// expressed is the target without the requirements that the affinity leaves unexpressed.
func expressed(target artifact.Target, a node.Affinity) artifact.Target {
	for _, u := range a.Unexpressed {
		switch device := target.Accelerator; {
		case u.Runtime != "":
			target.Runtimes = nil
		case u.Requirement == "cpu.features":
			target.CPU.Features = slices.DeleteFunc(slices.Clone(target.CPU.Features), func(f string) bool { return f == u.Need })
		case u.Requirement == "accelerator":
			target.Accelerator, target.Compatibility = nil, ""
		case u.Requirement == "accelerator.arch":
			without := *device
			without.Arch, target.Accelerator = "", &without
		case u.Requirement == "accelerator.driver":
			without := *device
			without.Driver, target.Accelerator = nil, &without
		}
	}
	return target
}

// drawLabels draws the labels that Node feature discovery and GPU feature discovery give a machine.
// In most cases it has the system and the architecture of the target, because else nothing more of it decides.
func drawLabels(t *rapid.T, target artifact.Target) map[string]string {
	labels := map[string]string{"kubernetes.io/os": target.OS, "kubernetes.io/arch": target.CPU.Arch}
	if rapid.IntRange(0, 7).Draw(t, "other machine") == 0 {
		labels["kubernetes.io/os"] = rapid.SampledFrom([]string{"linux", "windows"}).Draw(t, "os")
		labels["kubernetes.io/arch"] = rapid.SampledFrom([]string{"amd64", "arm64"}).Draw(t, "arch")
	}
	const cpuid = "feature.node.kubernetes.io/cpu-cpuid."
	if labels["kubernetes.io/arch"] == "amd64" {
		level := rapid.IntRange(1, 4).Draw(t, "level")
		flags := [][]string{{"X86_64_V1"}, {"X86_64_V2"}, {"X86_64_V3", "AVX", "AVX2", "FMA3"}, {"X86_64_V4", "AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"}}
		for _, flag := range slices.Concat(flags[:level]...) {
			labels[cpuid+flag] = "true"
		}
		for _, flag := range rapid.SliceOf(rapid.SampledFrom([]string{"AVX512VNNI", "AMXINT8", "AVXVNNI", "AVX"})).Draw(t, "flags") {
			labels[cpuid+flag] = "true"
		}
	} else {
		for _, flag := range rapid.SliceOf(rapid.SampledFrom([]string{"ASIMDDP", "SVE", "ASIMDFHM", "I8MM"})).Draw(t, "flags") {
			labels[cpuid+flag] = "true"
		}
	}
	if target.Accelerator != nil && rapid.IntRange(0, 7).Draw(t, "no device") > 0 {
		drawGPU(t, labels)
	}
	return labels
}

func drawGPU(t *rapid.T, labels map[string]string) {
	products := []string{"NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"}
	set := func(prefix, product string) {
		labels[prefix+"count"] = fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "count"))
		labels[prefix+"memory"] = fmt.Sprint(rapid.IntRange(15, 17).Draw(t, "memory"))
		labels[prefix+"replicas"] = "1"
		labels[prefix+"product"] = product
		switch rapid.SampledFrom([]string{"", "", "shared", "renamed"}).Draw(t, "shared") {
		case "shared":
			labels[prefix+"product"] += "-SHARED"
			labels[prefix+"replicas"] = "4"
		case "renamed":
			labels[prefix+"replicas"] = "2"
		}
	}
	product := rapid.SampledFrom(products).Draw(t, "product")
	labels["nvidia.com/mig.strategy"] = rapid.SampledFrom([]string{"none", "single", "mixed"}).Draw(t, "strategy")
	switch labels["nvidia.com/mig.strategy"] {
	case "mixed":
		set("nvidia.com/gpu.", product)
		for _, profile := range []string{"1g.10gb", "3g.40gb"} {
			if rapid.Bool().Draw(t, profile) {
				set("nvidia.com/mig-"+profile+".", product+"-MIG-"+profile)
			}
		}
	case "single":
		if profile := rapid.SampledFrom([]string{"", "1g.10gb", "3g.40gb"}).Draw(t, "profile"); profile != "" {
			product += "-MIG-" + profile
			labels["nvidia.com/gpu.slices.gi"] = profile[:1]
		}
		set("nvidia.com/gpu.", product)
	default:
		set("nvidia.com/gpu.", product)
	}
	capability := rapid.SampledFrom([]string{"8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0"}).Draw(t, "capability")
	labels["nvidia.com/gpu.compute.major"], labels["nvidia.com/gpu.compute.minor"], _ = strings.Cut(capability, ".")
	drawDriver(t, labels)
}

func drawDriver(t *rapid.T, labels map[string]string) {
	version := drawVersion(t, 2)
	numbers := append(strings.Split(version, "."), "")
	const driver = "nvidia.com/cuda.driver-version."
	labels[driver+"full"], labels[driver+"major"], labels[driver+"minor"], labels[driver+"revision"] = version, numbers[0], numbers[1], numbers[2]
}

// drawVersion draws versions that are close to each other.
func drawVersion(t *rapid.T, atLeast int) string {
	numbers := []string{rapid.SampledFrom([]string{"579", "580"}).Draw(t, "major")}
	for count := rapid.IntRange(atLeast, 3).Draw(t, "numbers"); len(numbers) < count; {
		numbers = append(numbers, rapid.SampledFrom([]string{"0", "00", "1", "06", "6"}).Draw(t, "number"))
	}
	return strings.Join(numbers, ".")
}

func drawTarget(t *rapid.T) artifact.Target {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	target := artifact.Target{V: 1, Name: "t", OS: pick("os", "linux", "linux", "windows"), CPU: artifact.TargetCPU{Arch: pick("arch", "amd64", "amd64", "arm64")}}
	names := []string{"asimddp", "sve", "asimdfhm", "no_such_feature"}
	if target.CPU.Arch == "amd64" {
		target.CPU.Level = pick("level", "", "v1", "v2", "v3", "v4")
		names = []string{"sse4_2", "f16c", "fma", "avx", "avx2", "avx512f", "avx512_vnni", "amx_int8", "avx_vnni"}
	}
	target.CPU.Features = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string]).Draw(t, "features")
	if rapid.Bool().Draw(t, "constrained") {
		target.Runtimes = map[string]artifact.Constraint{"tensorrt": {Min: "10.9"}}
	}
	if rapid.IntRange(0, 3).Draw(t, "accelerator") == 0 {
		return target
	}
	a := &artifact.TargetAccelerator{
		Vendor: pick("vendor", "nvidia", "nvidia", "nvidia", "nvidia", "amd"), Product: pick("product", "NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"),
		Arch: pick("capability", "", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_90a"), MIG: pick("mig", "", "", "1g.10gb", "3g.40gb"),
		Count: rapid.IntRange(0, 3).Draw(t, "count"), MemoryMiB: int64(rapid.SampledFrom([]int{0, 15, 16, 17}).Draw(t, "memory")),
	}
	target.Compatibility = artifact.Compatibility(pick("compatibility", "", "exact", "same-compute-capability", "version-compatible"))
	if a.MIG == "" && rapid.Bool().Draw(t, "any product") {
		a.Product = ""
	}
	if a.MIG != "" { // the label of the single strategy names a profile behind a product
		target.Compatibility = ""
	}
	a.Driver = drawConstraint(t)
	target.Accelerator = a
	return target
}

func drawConstraint(t *rapid.T) *artifact.Constraint {
	c := artifact.Constraint{}
	switch rapid.SampledFrom([]string{"", "exact", "min", "below", "both"}).Draw(t, "driver") {
	case "exact":
		c.Exact = drawVersion(t, 1)
	case "min":
		c.Min = drawVersion(t, 1)
	case "below":
		c.Below = drawVersion(t, 1)
	case "both":
		c.Min, c.Below = drawVersion(t, 1), drawVersion(t, 1)
	}
	if c.Validate() != nil {
		return nil
	}
	return &c
}

// nodesPerTarget is how many nodes are drawn for each target, so that a few of them are at its boundaries.
const nodesPerTarget = 50

// Nodes that a target admits by our own rules are those that the scheduler admits by the affinity.
func TestAffinitySelectsWhatTheTargetMatches(t *testing.T) {
	t.Parallel()
	outcomes := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		target := drawTarget(t)
		a, err := node.AffinityOf(target, true)
		if err != nil {
			t.Fatalf("%+v: %v", target, err)
		}
		for range nodesPerTarget {
			labels := drawLabels(t, target)
			missing := unmet(t, target, a, labels)
			if admitted := admits(t, a, labels); admitted != (len(missing) == 0) {
				t.Fatalf("labels %v\nthe affinity admits: %v; the target: %v\nterms %v\nunexpressed %v", labels, admitted, missing, a.Terms, a.Unexpressed)
			}
			outcomes[len(missing) == 0]++
		}
	})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("%d nodes were admitted and %d refused: the drawn ones show nothing", outcomes[true], outcomes[false])
	}
}

// The driver alone is drawn more often, because nearly every boundary is one of its numbers.
func TestAffinityBoundsTheDriver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		labels := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "nvidia.com/gpu.product": "NVIDIA-L4",
			"nvidia.com/gpu.count": "1", "nvidia.com/mig.strategy": "none"}
		only := artifact.Target{V: 1, Name: "t", OS: "linux", CPU: artifact.TargetCPU{Arch: "arm64"},
			Accelerator: &artifact.TargetAccelerator{Vendor: "nvidia", Driver: drawConstraint(t)}}
		a, err := node.AffinityOf(only, true)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for range nodesPerTarget {
			drawDriver(t, labels)
			if missing, admitted := unmet(t, only, a, labels), admits(t, a, labels); admitted != (len(missing) == 0) {
				t.Fatalf("driver %s: the affinity admits: %v; the target: %v\nterms %v", labels["nvidia.com/cuda.driver-version.full"], admitted, missing, a.Terms)
			}
		}
	})
}

// Without labels that discovery leaves out, the affinity selects fewer nodes than the target, never more.
func TestAffinitySelectsNoOtherNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		target := drawTarget(t)
		labels := drawLabels(t, target)
		for _, label := range registry.SortedKeys(labels) {
			// A version with a number between missing ones is not a version, and then the whole node is unreadable. The
			// label of slices is written with the profile in the product, or not at all.
			optional := !strings.HasPrefix(label, "kubernetes.io/") && !strings.Contains(label, "driver-version") && !strings.Contains(label, "compute.") &&
				label != "nvidia.com/gpu.slices.gi"
			if optional && rapid.IntRange(0, 3).Draw(t, "leave out "+label) == 0 {
				delete(labels, label)
			}
		}
		a, err := node.AffinityOf(target, true)
		if err != nil {
			t.Fatalf("%+v: %v", target, err)
		}
		if missing := unmet(t, target, a, labels); len(missing) > 0 && admits(t, a, labels) {
			t.Fatalf("the affinity admits a node that lacks %v\nterms %v", missing, a.Terms)
		}
	})
}

// Terms are as short as people would write them.
func TestAffinityOfKnownTargets(t *testing.T) {
	t.Parallel()
	target := artifact.Target{V: 1, Name: "h100", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v3", Features: []string{"f16c", "avx512_vnni"}},
		Compatibility: artifact.CompatibilityVersionCompatible,
		Accelerator:   &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90", Driver: &artifact.Constraint{Min: "580"}},
		Runtimes:      map[string]artifact.Constraint{"tensorrt": {Exact: "10.9.0.34"}}}
	got, err := node.AffinityOf(target, true)
	if err != nil {
		t.Fatal(err)
	}
	const cpuid = "feature.node.kubernetes.io/cpu-cpuid."
	base := []node.Expression{
		{Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux"}}, {Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}},
		{Key: cpuid + "X86_64_V3", Operator: "In", Values: []string{"true"}}, {Key: cpuid + "AVX512VNNI", Operator: "In", Values: []string{"true"}},
	}
	devices := []node.Expression{
		{Key: "nvidia.com/gpu.product", Operator: "Exists"}, {Key: "nvidia.com/mig.strategy", Operator: "NotIn", Values: []string{"mixed"}},
		{Key: "nvidia.com/gpu.slices.gi", Operator: "DoesNotExist"}, {Key: "nvidia.com/gpu.count", Operator: "Gt", Values: []string{"0"}},
		{Key: "nvidia.com/gpu.compute.major", Operator: "Gt", Values: []string{"8"}},
		{Key: "nvidia.com/cuda.driver-version.major", Operator: "Gt", Values: []string{"579"}},
	}
	want := node.Affinity{Terms: [][]node.Expression{slices.Concat(base, devices)},
		Unexpressed: []artifact.Mismatch{{Requirement: "runtimes.tensorrt", Need: "10.9.0.34", Runtime: "tensorrt"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err = node.AffinityOf(target, false); err != nil || cmp.Diff([][]node.Expression{base}, got.Terms) != "" {
		t.Errorf("without devices: %v, error %v; want the processor alone", got.Terms, err)
	}
	for name, none := range map[string]artifact.Target{"zero": {}, "without an architecture": {V: 1, Name: "t", OS: "linux"}} {
		if got, err := node.AffinityOf(none, true); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: %v, error %v; want CodeInvalid", name, got, err)
		}
	}
}
