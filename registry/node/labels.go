package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// SourceLabels is the Source of a Node that was read from the labels of a Kubernetes node.
const SourceLabels = "kubernetes"

// Labels that are read. Node feature discovery sets those of processors, GPU feature discovery
// those of devices.
const (
	labelArch   = "kubernetes.io/arch"
	labelOS     = "kubernetes.io/os"
	labelCPUID  = "feature.node.kubernetes.io/cpu-cpuid."
	labelVendor = "feature.node.kubernetes.io/cpu-model.vendor_id"
	labelGPU    = "nvidia.com/gpu."
	labelMIG    = "nvidia.com/mig-"
	labelDriver = "nvidia.com/cuda.driver-version."
	labelOld    = "nvidia.com/cuda.driver." // major, minor and rev, before there was labelDriver

	sharedSuffix = "-SHARED" // of the label of the product, if several pods get the same device
)

// maxLabels is more labels than any node has.
const maxLabels = 4096

// ParseLabels reads the labels of a Kubernetes node: a Node object as printed by kubectl get
// node -o json, an object with "labels", or only the labels. Errors call the file name. Errors:
// CodeInvalid.
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
		return nil, registry.Errorf(registry.CodeInvalid,
			"labels file %s: want a Node as `kubectl get node NAME -o json` prints it, or its labels as a JSON object", name)
	}
	return labels, nil
}

// FromLabels describes the node that has these labels. A fact without a label is left out, and
// so meets no requirement. A label with an invalid value is an error. Labels do not name
// runtimes. Errors: CodeInvalid, naming the label.
func FromLabels(labels map[string]string) (artifact.Node, error) {
	if len(labels) > maxLabels {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "%d labels: want at most %d", len(labels), maxLabels)
	}
	if labels[labelArch] == "" {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid,
			"labels: %s is missing: want all labels of a Kubernetes node", labelArch)
	}
	n := artifact.Node{V: documentVersion, OS: labels[labelOS], CPU: labelledCPU(labels), Source: SourceLabels}
	if n.OS == "" {
		n.OS = "linux"
	}
	devices, notes, err := labelledDevices(labels)
	if err == nil {
		n.Accelerators, n.Notes = devices, notes
		err = checkNode(n)
	}
	if err != nil {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "labels: %w", err)
	}
	return n, nil
}

// labelledCPU reads the processor. Node feature discovery uses the feature names of the library
// from which our list is made; on arm64 it uses those of the kernel. By default it has no label for
// some features that a level requires, so the label of the level stands for these too.
func labelledCPU(labels map[string]string) artifact.NodeCPU {
	c := artifact.NodeCPU{Arch: labels[labelArch], Vendor: map[string]string{"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}[labels[labelVendor]]}
	has := func(flag string) bool { return labels[labelCPUID+flag] == "true" }
	for _, f := range features() {
		if has(f.id.String()) || has(strings.ToUpper(f.name)) {
			c.Features = append(c.Features, f.name)
		}
	}
	if c.Arch == "amd64" {
		c.Level = "v1" // all of them are
		for _, level := range levels() {
			if has(levelFlag(level.name)) {
				c.Level = level.name
			}
		}
		for _, level := range levels() {
			if level.name <= c.Level {
				c.Features = append(c.Features, level.features...)
			}
		}
	}
	slices.Sort(c.Features)
	c.Features = slices.Compact(c.Features)
	return c
}

// levelFlag is how Node feature discovery calls an x86-64 level.
func levelFlag(level string) string { return "X86_64_" + strings.ToUpper(level) }

// labelledDevices lists whole devices, or the MIG instances of partitioned ones.
func labelledDevices(labels map[string]string) ([]artifact.NodeAccelerator, []string, error) {
	product := labels[labelGPU+"product"]
	if product == "" {
		return nil, nil, nil
	}
	device := artifact.NodeAccelerator{Vendor: "nvidia", Driver: labelledDriver(labels)}
	if major := labels[labelGPU+"compute.major"]; major != "" {
		capability := capabilityPattern.FindStringSubmatch(major + "." + labels[labelGPU+"compute.minor"])
		if capability == nil {
			return nil, nil, fmt.Errorf(
				"%scompute.major %q and .minor %q: want a compute capability", labelGPU, major, labels[labelGPU+"compute.minor"])
		}
		device.Arch = "sm_" + capability[1] + capability[2]
	}
	if labels["nvidia.com/mig.strategy"] == "mixed" {
		return mixedInstances(labels, device, product)
	}
	product, shared := strings.CutSuffix(product, sharedSuffix)
	shared = shared || isShared(labels, labelGPU)
	device.Product, device.MIG, _ = strings.Cut(product, "-MIG-")
	devices, err := repeated(labels, labelGPU, device, shared)
	if shared && err == nil {
		return devices, []string{"nvidia: devices are shared, so the memory of one share is not known"}, nil
	}
	return devices, nil, err
}

// mixedInstances lists the MIG instances of each profile. The labels do not tell which devices
// are unpartitioned, so no whole device is listed.
func mixedInstances(labels map[string]string, device artifact.NodeAccelerator,
	product string) (all []artifact.NodeAccelerator, notes []string, err error) {
	var profiles []string
	for label := range labels {
		if profile, ok := strings.CutSuffix(strings.TrimPrefix(label, labelMIG), ".count"); ok && strings.HasPrefix(label, labelMIG) {
			profiles = append(profiles, profile)
		}
	}
	slices.Sort(profiles)
	device.Product, _ = strings.CutSuffix(product, sharedSuffix)
	for _, profile := range profiles {
		instance := device
		instance.MIG = profile
		instances, err := repeated(labels, labelMIG+profile+".", instance, isShared(labels, labelMIG+profile+"."))
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, instances...); len(all) > maxGPUs {
			return nil, nil, fmt.Errorf("%s*.count: more than %d instances", labelMIG, maxGPUs)
		}
	}
	return all, []string{"nvidia: devices are in the mixed MIG strategy, so only MIG instances are listed"}, nil
}

// isShared reports whether several pods get the same device, under one name or another.
func isShared(labels map[string]string, prefix string) bool {
	replicas, err := strconv.Atoi(labels[prefix+"replicas"])
	return err == nil && replicas > 1 || strings.HasSuffix(labels[prefix+"product"], sharedSuffix)
}

// repeated returns a list of equal devices, with memory and count from the labels with prefix.
func repeated(labels map[string]string, prefix string, device artifact.NodeAccelerator, shared bool) ([]artifact.NodeAccelerator, error) {
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
	return slices.Repeat([]artifact.NodeAccelerator{device}, count), nil
}

// labelledDriver returns the version of the GPU driver from the labels that are present.
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
