package cluster

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// Claim asks a DRA driver for the devices of a target.
type Claim struct {
	DeviceClass string              `json:"deviceClass"`
	Count       int                 `json:"count"`
	Selectors   []string            `json:"selectors"`             // CEL; a device must meet all
	Unexpressed []artifact.Mismatch `json:"unexpressed,omitempty"` // requirements on the device that no attribute expresses
}

// ClaimOf returns the claim for the devices of a target. Its selectors are false, and no error, for devices without the
// attribute that they ask for: an error in a selector would stop the allocation of the whole claim. Errors: CodeInvalid
// for a target without an accelerator, or for a vendor without a known DRA driver.
func ClaimOf(t artifact.Target) (Claim, error) {
	a := t.Accelerator
	if a == nil {
		return Claim{}, registry.Errorf(registry.CodeInvalid, "target %s needs no accelerator, so there is nothing to claim", t.Name)
	}
	if _, err := node.AffinityOf(t, false); err != nil { // a target that no machine meets
		return Claim{}, err
	}
	var of driver
	for _, d := range drivers() {
		if d.vendor == a.Vendor {
			of = d
		}
	}
	c := Claim{DeviceClass: of.class, Count: max(a.Count, 1)}
	switch {
	case of.name == "":
		return Claim{}, registry.Errorf(registry.CodeInvalid, "target %s: no DRA driver for accelerators of %.40q is known", t.Name, a.Vendor)
	case a.MIG != "" && of.partClass == "":
		return Claim{}, registry.Errorf(registry.CodeInvalid, "target %s: devices of %s have no MIG profiles", t.Name, a.Vendor)
	case a.MIG != "":
		c.DeviceClass = of.partClass
		c.attribute(of, "type", " == "+strconv.Quote(of.part))
		c.attribute(of, of.profile, " == "+strconv.Quote(a.MIG))
	case of.whole != "":
		c.attribute(of, "type", " == "+strconv.Quote(of.whole))
	}
	if exact := t.Compatibility == "" || t.Compatibility == artifact.CompatibilityExact; a.Product != "" && exact {
		c.attribute(of, of.product, `.replace(" ", "-") == `+strconv.Quote(a.Product))
	}
	c.addArch(of, *a, t.Compatibility)
	if a.Driver != nil {
		c.addDriver(of, *a.Driver)
	}
	if a.MemoryMiB > 0 {
		c.Selectors = append(c.Selectors, fmt.Sprintf(`cel.bind(of, device.capacity[%q], has(of.memory) && of.memory.compareTo(quantity("%dMi")) >= 0)`,
			of.name, a.MemoryMiB))
	}
	return c, nil
}

// attribute adds a selector on an attribute: the conditions are what follows its name.
func (c *Claim) attribute(of driver, name string, conditions ...string) {
	text := ""
	for _, condition := range conditions {
		text += " && of." + name + condition
	}
	c.Selectors = append(c.Selectors, fmt.Sprintf("cel.bind(of, device.attributes[%q], has(of.%s)%s)", of.name, name, text))
}

func (c *Claim) addArch(of driver, a artifact.TargetAccelerator, far artifact.Compatibility) {
	if a.Arch == "" {
		return
	}
	major, minor, ok := node.ComputeCapability(a.Arch)
	if !ok || of.capability == "" {
		c.Unexpressed = append(c.Unexpressed, artifact.Mismatch{Requirement: "accelerator.arch", Need: a.Arch})
		return
	}
	operator := "=="
	if far == artifact.CompatibilityVersionCompatible {
		operator = ">="
	}
	c.attribute(of, of.capability, compared(fmt.Sprintf("%d.%d.0", major, minor), operator))
}

func (c *Claim) addDriver(of driver, constraint artifact.Constraint) {
	var conditions []string
	for _, bound := range []struct{ version, operator string }{{constraint.Exact, "=="}, {constraint.Min, ">="}, {constraint.Below, "<"}} {
		if bound.version == "" {
			continue
		}
		version, ok := semantic(bound.version)
		if !ok || of.version == "" {
			c.Unexpressed = append(c.Unexpressed, artifact.Mismatch{Requirement: "accelerator.driver", Need: constraint.String()})
			return
		}
		conditions = append(conditions, compared(version, bound.operator))
	}
	c.attribute(of, of.version, conditions...)
}

// compared compares an attribute that is a version.
func compared(version, operator string) string {
	return fmt.Sprintf(`.compareTo(semver(%q)) %s 0`, version, operator)
}

// semantic writes a version as semver.org has it: three numbers without leading zeros.
func semantic(version string) (string, bool) {
	parts := strings.Split(version, ".")
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 63)
		if err != nil || i > 2 && n != 0 {
			return "", false
		}
		parts[i] = strconv.FormatUint(n, 10)
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	return strings.Join(parts[:3], "."), true
}

// TargetOf returns the target that asks for all facts of a node type. Errors: CodeInvalid for a
// node type with devices of several kinds, which one target cannot ask for.
func TargetOf(name string, n artifact.Node) (artifact.Target, error) {
	t := artifact.Target{
		V: artifact.TargetVersion, Name: ObjectName(name), OS: n.OS,
		CPU: artifact.TargetCPU{Arch: n.CPU.Arch, Level: n.CPU.Level, Features: n.CPU.Features},
	}
	for _, a := range n.Accelerators {
		if t.Accelerator == nil {
			t.Accelerator = &artifact.TargetAccelerator{Vendor: a.Vendor, Arch: a.Arch, Product: a.Product, MemoryMiB: a.MemoryMiB, MIG: a.MIG}
			if a.Driver != "" {
				t.Accelerator.Driver = &artifact.Constraint{Min: a.Driver}
			}
		}
		if deviceKey(a) != deviceKey(n.Accelerators[0]) {
			return t, registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"node type %s has devices of several kinds, and a target asks for one", name), "export the target of an engine")
		}
		t.Accelerator.Count++
	}
	return t, nil
}

var notInObject = regexp.MustCompile(`[^a-z0-9]+`)

// ObjectName is a name that targets and objects of Kubernetes can have.
func ObjectName(name string) string {
	name = strings.Trim(notInObject.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), 48)], "-"), "unnamed")
}
