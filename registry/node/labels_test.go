package node_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// labelled is an amd64 node with more labels.
func labelled(more ...string) map[string]string {
	labels := map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "n1", "node.kubernetes.io/instance-type": "g6.xlarge",
	}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func gpu(more ...string) map[string]string {
	labels := labelled("nvidia.com/gpu.product", "NVIDIA-L4", "nvidia.com/gpu.compute.major", "8", "nvidia.com/gpu.compute.minor", "9",
		"nvidia.com/gpu.memory", "23034", "nvidia.com/gpu.count", "1", "nvidia.com/cuda.driver-version.full", "580.65.06")
	maps.Copy(labels, labelled(more...))
	return labels
}

func TestFromLabels(t *testing.T) {
	t.Parallel()
	const cpuid = "feature.node.kubernetes.io/cpu-cpuid."
	l4 := artifact.NodeAccelerator{Vendor: "nvidia", Product: "NVIDIA-L4", Arch: "sm_89", MemoryMiB: 23034, Driver: "580.65.06"}
	shared, slice := l4, l4
	shared.MemoryMiB = 0
	slice.Product, slice.MIG, slice.MemoryMiB = "NVIDIA-H200", "1g.18gb", 16384
	old := l4
	old.Driver = "535.104.5"
	for name, c := range map[string]struct {
		labels map[string]string
		cpu    artifact.NodeCPU
		gpus   []artifact.NodeAccelerator
	}{
		"bare": {labelled(), artifact.NodeCPU{Arch: "amd64", Level: "v1"}, nil},
		"arm64": {labelled("kubernetes.io/arch", "arm64", cpuid+"ASIMDDP", "true", cpuid+"SVE", "true", cpuid+"X86_64_V4", "true"),
			artifact.NodeCPU{Arch: "arm64", Features: []string{"asimddp", "sve"}}, nil},
		"features": {
			labelled(cpuid+"AVX512VNNI", "true", cpuid+"AVX2", "true", cpuid+"FMA3", "true", cpuid+"AVXVNNI",
				"false", cpuid+"X86_64_V2", "true", cpuid+"X86_64_V3", "true", "feature.node.kubernetes.io/cpu-model.vendor_id", "Intel"),
			artifact.NodeCPU{Arch: "amd64", Level: "v3", Vendor: "GenuineIntel",
				Features: []string{"avx", "avx2", "avx512_vnni", "f16c", "fma", "sse4_1", "sse4_2"}}, nil,
		},
		"gpu":      {gpu(), artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{l4}},
		"two gpus": {gpu("nvidia.com/gpu.count", "2"), artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{l4, l4}},
		"shared":   {gpu("nvidia.com/gpu.product", "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas", "4"), artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{shared}},
		"older discovery": {
			gpu("nvidia.com/cuda.driver-version.full", "", "nvidia.com/cuda.driver.major",
				"535", "nvidia.com/cuda.driver.minor", "104", "nvidia.com/cuda.driver.rev", "5"),
			artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{old},
		},
		"partitioned alike": {
			gpu("nvidia.com/gpu.product", "NVIDIA-H200-MIG-1g.18gb", "nvidia.com/mig.strategy",
				"single", "nvidia.com/gpu.memory", "16384", "nvidia.com/gpu.count", "2"),
			artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{slice, slice},
		},
		"partitioned": {
			gpu("nvidia.com/gpu.product", "NVIDIA-H200", "nvidia.com/mig.strategy", "mixed",
				"nvidia.com/mig-1g.18gb.count", "1", "nvidia.com/mig-1g.18gb.memory", "16384"),
			artifact.NodeCPU{Arch: "amd64", Level: "v1"}, []artifact.NodeAccelerator{slice},
		},
	} {
		got, err := node.FromLabels(c.labels)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.V != 1 || got.OS != "linux" || got.Source != node.SourceLabels || got.Runtimes != nil {
			t.Errorf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(c.cpu, got.CPU) + cmp.Diff(c.gpus, got.Accelerators); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A node has as many GPUs as a document can list, and none if its labels count none.
func TestFromLabelsCounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "1": 1, "256": 256} {
		if n, err := node.FromLabels(gpu("nvidia.com/gpu.count", text)); err != nil || len(n.Accelerators) != want {
			t.Errorf("count %s: %d accelerators, error %v; want %d", text, len(n.Accelerators), err, want)
		}
	}
	for _, text := range []string{"257", "-1", "1.5"} {
		if n, err := node.FromLabels(gpu("nvidia.com/gpu.count", text)); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("count %s: %+v, error %v; want CodeInvalid", text, n, err)
		}
	}
}

func TestFromLabelsRefuses(t *testing.T) {
	t.Parallel()
	for says, labels := range map[string]map[string]string{
		"kubernetes.io/arch is missing": {"kubernetes.io/os": "linux"},
		"cpu.arch":                      {"kubernetes.io/arch": "AMD 64"},
		"compute capability":            gpu("nvidia.com/gpu.compute.minor", "x"),
		"memory":                        gpu("nvidia.com/gpu.memory", "much"),
		"count":                         gpu("nvidia.com/gpu.count", "100000"),
		"driver":                        gpu("nvidia.com/cuda.driver-version.full", "new"),
		"mig":                           gpu("nvidia.com/gpu.product", "NVIDIA-H200-MIG-huge"),
		"instances":                     gpu("nvidia.com/mig.strategy", "mixed", "nvidia.com/mig-1g.5gb.count", "200", "nvidia.com/mig-2g.10gb.count", "200"),
	} {
		if got, err := node.FromLabels(labels); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, error %v, want CodeInvalid", says, got, err)
		}
	}
}

func TestParseLabels(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","labels":{"kubernetes.io/arch":"amd64"}},"status":{}}`,
		`{"labels":{"kubernetes.io/arch":"amd64"}}`, `{"kubernetes.io/arch":"amd64"}`,
	} {
		if got, err := node.ParseLabels("x", []byte(text)); err != nil || len(got) != 1 || got["kubernetes.io/arch"] != "amd64" {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `{}`, `{"kind":"Pod","metadata":{"labels":{"kubernetes.io/arch":"amd64"}}}`, `{"kubernetes.io/arch":7}`, `{"labels":{"a":1}}`} {
		if got, err := node.ParseLabels("x", []byte(text)); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: %v, %v, want CodeInvalid", text, got, err)
		}
	}
}

// Whatever labels say, what comes out is a node document that is read again as it is.
func FuzzFromLabels(f *testing.F) {
	for _, labels := range []map[string]string{labelled(), gpu(), gpu("nvidia.com/mig.strategy", "mixed", "nvidia.com/mig-1g.18gb.count", "3")} {
		text, err := json.Marshal(labels)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		labels, err := node.ParseLabels("fuzz", text)
		if err != nil {
			return
		}
		n, err := node.FromLabels(labels)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		document, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := node.Parse("fuzz", document)
		if err != nil {
			t.Fatalf("%s is read as %s: %v", text, document, err)
		}
		if diff := cmp.Diff(n, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
