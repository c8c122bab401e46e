package cluster

import (
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// Gap is a fact that a node has and nothing in the cluster states, with the cure.
type Gap struct {
	Fact string `json:"fact"`
	Do   string `json:"do"`
}

// signs is what a node is read for gaps by.
type signs struct {
	labels   map[string]string
	capacity map[string]string
	document artifact.Node
}

// gaps is the table of facts that can be missing. The first row of a fact that applies counts.
func gaps() []struct {
	fact, do string
	lacks    func(signs) bool
} {
	const (
		install = "install Node Feature Discovery 0.19 or later"
		update  = "update Node Feature Discovery to 0.19 or later: labels of older versions do not state the x86-64 level"
		gfd     = "enable GPU feature discovery of NVIDIA's device plugin, or install NVIDIA's DRA driver"
	)
	amd64 := func(s signs) bool { return s.document.CPU.Arch == "amd64" }
	return []struct {
		fact, do string
		lacks    func(signs) bool
	}{
		{"cpu.level", install, func(s signs) bool { return amd64(s) && !s.flags() }},
		{"cpu.level", update, func(s signs) bool {
			return amd64(s) && s.labels[cpuid+"X86_64_V1"] == "" && s.document.CPU.Level == "v1"
		}},
		{"cpu.features", install, func(s signs) bool { return !s.flags() }},
		{"accelerators", gfd, func(s signs) bool { return s.device("nvidia", "10de", "nvidia.com/gpu") }},
		{"accelerators", "install AMD's DRA driver: no labels of AMD devices are read", func(s signs) bool { return s.device("amd", "1002", "amd.com/gpu") }},
		{"accelerators", "install Intel's DRA driver: no labels of Intel devices are read", func(s signs) bool {
			return s.device("intel", "", "gpu.intel.com/i915") || s.device("intel", "", "gpu.intel.com/xe")
		}},
		{"accelerator.arch", gfd, func(s signs) bool { return s.some(func(a artifact.NodeAccelerator) bool { return a.Arch == "" }) }},
		{"accelerator.driver", gfd, func(s signs) bool { return s.some(func(a artifact.NodeAccelerator) bool { return a.Driver == "" }) }},
		{"accelerator.memoryMiB", "nothing states the memory of a shared device: let pods that need an amount of it have whole devices", func(s signs) bool {
			return s.some(func(a artifact.NodeAccelerator) bool { return a.MemoryMiB == 0 })
		}},
	}
}

const cpuid = "feature.node.kubernetes.io/cpu-cpuid."

// flags reports whether there are labels of processor features.
func (s signs) flags() bool {
	for label := range s.labels {
		if strings.HasPrefix(label, cpuid) {
			return true
		}
	}
	return false
}

// device reports whether the node has devices of a vendor that its document does not list: by the resource that a
// device plugin offers, or by a display controller or processing accelerator (PCI classes 03 and 12) of the vendor.
func (s signs) device(vendor, pci, resource string) bool {
	for _, a := range s.document.Accelerators {
		if a.Vendor == vendor {
			return false
		}
	}
	if n := s.capacity[resource]; n != "" && n != "0" {
		return true
	}
	for label := range s.labels {
		device, ok := strings.CutPrefix(label, "feature.node.kubernetes.io/pci-")
		class, has := strings.CutSuffix(device, "_"+pci+".present")
		if ok && has && pci != "" && (strings.HasPrefix(class, "03") || strings.HasPrefix(class, "12")) {
			return true
		}
	}
	return false
}

// some reports whether a device of NVIDIA lacks a fact.
func (s signs) some(lacks func(artifact.NodeAccelerator) bool) bool {
	for _, a := range s.document.Accelerators {
		if a.Vendor == "nvidia" && lacks(a) {
			return true
		}
	}
	return false
}

func gapsOf(o object, document artifact.Node) []Gap {
	s := signs{labels: o.Metadata.Labels, capacity: o.Status.Capacity, document: document}
	var all []Gap
	named := map[string]bool{}
	for _, g := range gaps() {
		if !named[g.fact] && g.lacks(s) {
			named[g.fact] = true
			all = append(all, Gap{g.fact, g.do})
		}
	}
	return all
}
