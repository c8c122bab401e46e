package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// SourceLabels is the Source of a Node that was read from the labels of a Kubernetes node.
const SourceLabels = "kubernetes"

// Labels that are read. Those of processors are made by node feature discovery, those of
// devices by GPU feature discovery.
const (
	labelArch   = "kubernetes.io/arch"
	labelOS     = "kubernetes.io/os"
	labelCPUID  = "feature.node.kubernetes.io/cpu-cpuid."
	labelVendor = "feature.node.kubernetes.io/cpu-model.vendor_id"
	labelGPU    = "nvidia.com/gpu."
	labelMIG    = "nvidia.com/mig-"
	labelDriver = "nvidia.com/cuda.driver-version."
	labelOld    = "nvidia.com/cuda.driver." // major, minor and rev, before there was labelDriver
)

// maxLabels is more labels than a node has.
const maxLabels = 4096

// ParseLabels reads the labels of a Kubernetes node: a Node object as kubectl get node -o
// json prints it, an object with "labels", or the labels alone; name stands for the file
// in errors. Errors: CodeInvalid.
func ParseLabels(name string, data []byte) (map[string]string, error) {
	var object struct {
		Kind     string            `json:"kind"`
		Labels   map[string]string `json:"labels"`
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &object); err == nil {
		switch {
		case object.Kind == "Node" && object.Metadata.Labels != nil:
			return object.Metadata.Labels, nil
		case object.Kind == "" && object.Labels != nil:
			return object.Labels, nil
		}
	}
	var labels map[string]string
	if err := json.Unmarshal(data, &labels); err != nil || labels[labelArch] == "" {
		return nil, registry.Errorf(registry.CodeInvalid, "labels file %s: want a Node as `kubectl get node NAME -o json` prints it, or its labels as a JSON object", name)
	}
	return labels, nil
}

// FromLabels describes the node that has these labels. What no label says is left out, and
// so meets no requirement; a label that cannot mean what it should is refused. Labels
// know no runtimes. Errors: CodeInvalid, naming the label.
func FromLabels(labels map[string]string) (registry.Node, error) {
	if len(labels) > maxLabels {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "%d labels: want at most %d", len(labels), maxLabels)
	}
	if labels[labelArch] == "" {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "labels: %s is missing: want all labels of a Kubernetes node", labelArch)
	}
	n := registry.Node{V: documentVersion, OS: labels[labelOS], CPU: labelledCPU(labels), Source: SourceLabels}
	if n.OS == "" {
		n.OS = "linux"
	}
	devices, notes, err := labelledDevices(labels)
	if err == nil {
		n.Accelerators, n.Notes = devices, notes
		err = checkNode(n)
	}
	if err != nil {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "labels: %w", err)
	}
	return n, nil
}

// labelledCPU reads the processor. Node feature discovery names features as the library
// does that our list is made with, on arm64 as the kernel does; its labels for the level
// say more than its features, of which it leaves out some that a level needs.
func labelledCPU(labels map[string]string) registry.NodeCPU {
	c := registry.NodeCPU{Arch: labels[labelArch], Vendor: map[string]string{"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}[labels[labelVendor]]}
	has := func(flag string) bool { return labels[labelCPUID+flag] == "true" }
	for _, f := range features() {
		if has(f.id.String()) || has(strings.ToUpper(f.name)) {
			c.Features = append(c.Features, f.name)
		}
	}
	slices.Sort(c.Features)
	if c.Arch == "amd64" {
		c.Level = "v1" // all of them are
		for _, level := range []string{"v2", "v3", "v4"} {
			if has("X86_64_" + strings.ToUpper(level)) {
				c.Level = level
			}
		}
	}
	return c
}

// labelledDevices lists whole devices, or the instances of partitioned ones.
func labelledDevices(labels map[string]string) ([]registry.NodeAccelerator, []string, error) {
	product := labels[labelGPU+"product"]
	if product == "" {
		return nil, nil, nil
	}
	device := registry.NodeAccelerator{Vendor: "nvidia", Driver: labelledDriver(labels)}
	if major := labels[labelGPU+"compute.major"]; major != "" {
		capability := capabilityPattern.FindStringSubmatch(major + "." + labels[labelGPU+"compute.minor"])
		if capability == nil {
			return nil, nil, fmt.Errorf("%scompute.major %q and .minor %q: want a compute capability", labelGPU, major, labels[labelGPU+"compute.minor"])
		}
		device.Arch = "sm_" + capability[1] + capability[2]
	}
	if labels["nvidia.com/mig.strategy"] == "mixed" {
		return mixedInstances(labels, device, product)
	}
	product, shared := strings.CutSuffix(product, "-SHARED")
	device.Product, device.MIG, _ = strings.Cut(product, "-MIG-")
	devices, err := repeated(labels, labelGPU, device, shared)
	if shared && err == nil {
		return devices, []string{"nvidia: devices are shared, so how much memory one has is not known"}, nil
	}
	return devices, nil, err
}

// mixedInstances lists the instances of each profile. Which devices are not partitioned
// is not said, so none is taken to be whole.
func mixedInstances(labels map[string]string, device registry.NodeAccelerator, product string) (all []registry.NodeAccelerator, notes []string, err error) {
	var profiles []string
	for label := range labels {
		if profile, ok := strings.CutSuffix(strings.TrimPrefix(label, labelMIG), ".count"); ok && strings.HasPrefix(label, labelMIG) {
			profiles = append(profiles, profile)
		}
	}
	slices.Sort(profiles)
	device.Product, _ = strings.CutSuffix(product, "-SHARED")
	for _, profile := range profiles {
		instance := device
		instance.MIG = profile
		instances, err := repeated(labels, labelMIG+profile+".", instance, strings.HasSuffix(labels[labelMIG+profile+".product"], "-SHARED"))
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, instances...); len(all) > maxGPUs {
			return nil, nil, fmt.Errorf("%s*.count: more than %d instances", labelMIG, maxGPUs)
		}
	}
	return all, []string{"nvidia: devices are partitioned as their users please, so no whole one is listed"}, nil
}

// repeated is a device with the memory, and as often, as the labels behind prefix say.
func repeated(labels map[string]string, prefix string, device registry.NodeAccelerator, shared bool) ([]registry.NodeAccelerator, error) {
	if text := labels[prefix+"memory"]; text != "" && !shared {
		var err error
		if device.MemoryMiB, err = parseMemory(text); err != nil {
			return nil, fmt.Errorf("%smemory %q: want MiB", prefix, text)
		}
	}
	count := 1
	if text := labels[prefix+"count"]; text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > maxGPUs {
			return nil, fmt.Errorf("%scount %q: want 0 to %d", prefix, text, maxGPUs)
		}
	}
	return slices.Repeat([]registry.NodeAccelerator{device}, count), nil
}

// labelledDriver is the driver's version, from whichever labels are there.
func labelledDriver(labels map[string]string) string {
	if full := labels[labelDriver+"full"]; full != "" {
		return full
	}
	for prefix, last := range map[string]string{labelDriver: "revision", labelOld: "rev"} {
		parts := []string{labels[prefix+"major"], labels[prefix+"minor"], labels[prefix+last]}
		if parts[0] != "" {
			return strings.Trim(strings.Join(parts, "."), ".")
		}
	}
	return ""
}
