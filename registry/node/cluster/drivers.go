package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// driver is a DRA driver: how its device classes and the attributes of its devices are called.
type driver struct {
	name   string // the domain of its attributes
	vendor string // as targets name it

	class, partClass string // DeviceClass of whole devices, and of partitions; empty: partitions cannot be asked for
	whole, part      string // value of the attribute type; empty: there is no such attribute

	// Attributes; empty: the driver does not publish the fact.
	product, capability, version, profile string
}

// drivers is the table of the drivers that are known. Sources, read and not run:
//
//   - kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go
//   - ROCm/k8s-gpu-dra-driver, docs/driver-attributes.md
//   - intel/intel-resource-drivers-for-kubernetes, cmd/kubelet-gpu-plugin/node_state.go
func drivers() []driver {
	return []driver{
		{
			name: "gpu.nvidia.com", vendor: "nvidia", class: "gpu.nvidia.com", partClass: "mig.nvidia.com", whole: "gpu", part: "mig",
			product: "productName", capability: "cudaComputeCapability", version: "driverVersion", profile: "profile",
		},
		{name: "gpu.amd.com", vendor: "amd", class: "gpu.amd.com", whole: "amdgpu", product: "productName", version: "driverVersion"},
		{name: "gpu.intel.com", vendor: "intel", class: "gpu.intel.com", product: "model"},
	}
}

func driverNamed(name string) (driver, bool) {
	for _, d := range drivers() {
		if d.name == name {
			return d, true
		}
	}
	return driver{}, false
}

// device is a device of a ResourceSlice.
type device struct {
	Name       string               `json:"name"`
	Attributes map[string]attribute `json:"attributes"`
	Capacity   map[string]struct {
		Value string `json:"value"`
	} `json:"capacity"`
	ConsumesCounters []struct{} `json:"consumesCounters"`
}

type attribute struct {
	String  *string `json:"string"`
	Version *string `json:"version"`
}

// text is the value of an attribute, which is named with or without the domain of the driver.
func (d device) text(of driver, name string) string {
	for _, key := range []string{name, of.name + "/" + name} {
		switch a := d.Attributes[key]; {
		case a.String != nil:
			return *a.String
		case a.Version != nil:
			return *a.Version
		}
	}
	return ""
}

// accelerator describes a device as a node document does. ok is false for devices that a document has no place for:
// those for virtual machines, and partitions that are made only when something asks for them. Errors: which attribute
// is wrong.
func (of driver) accelerator(d device) (a artifact.NodeAccelerator, ok bool, err error) {
	kind := d.text(of, "type")
	partition := of.part != "" && kind == of.part
	if of.whole != "" && kind != of.whole && !partition || partition && len(d.ConsumesCounters) > 0 {
		return a, false, nil
	}
	a = artifact.NodeAccelerator{Vendor: of.vendor, Product: strings.ReplaceAll(d.text(of, of.product), " ", "-")}
	if partition {
		if a.MIG = d.text(of, of.profile); a.MIG == "" {
			return a, false, fmt.Errorf("attribute %s is missing: want the profile of the partition", of.profile)
		}
	}
	if text := d.text(of, of.capability); text != "" {
		m := capabilityPattern.FindStringSubmatch(text)
		if m == nil {
			return a, false, fmt.Errorf("attribute %s is %q: want a version such as 9.0.0", of.capability, registry.PlainText(text))
		}
		a.Arch = "sm_" + m[1] + m[2]
	}
	a.Driver = d.text(of, of.version)
	for _, key := range []string{"memory", of.name + "/memory"} {
		if c, has := d.Capacity[key]; has {
			if a.MemoryMiB, err = mebibytes(c.Value); err != nil {
				return a, false, fmt.Errorf("capacity %s: %w", key, err)
			}
		}
	}
	return a, true, nil
}

// The third number is there because versions of DRA are those of semver.org.
var capabilityPattern = regexp.MustCompile(`^([0-9]{1,2})\.([0-9])(?:\.0)?$`)

var quantityPattern = regexp.MustCompile(`^([0-9]{1,15})(Ki|Mi|Gi|Ti|k|M|G|T)?$`)

// mebibytes reads a quantity as the API server writes it, rounded down as GPU feature discovery does.
func mebibytes(quantity string) (int64, error) {
	m := quantityPattern.FindStringSubmatch(quantity)
	if m == nil {
		return 0, fmt.Errorf("%q: want bytes such as 81559Mi", registry.PlainText(quantity))
	}
	number, err := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{
		"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	}[m[2]]
	if err != nil || number > (1<<62)/unit {
		return 0, fmt.Errorf("%q: want bytes such as 81559Mi", registry.PlainText(quantity))
	}
	return number * unit >> 20, nil
}
