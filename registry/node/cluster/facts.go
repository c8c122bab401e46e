package cluster

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// sameVersion compares number by number: 580.105.08 is 580.105.8.
func sameVersion(a, b string) bool {
	return a == b || a != "" && b != "" && artifact.CompareVersions(a, b) == 0
}

// compareDevices orders devices by their facts.
func compareDevices(a, b artifact.NodeAccelerator) int {
	return strings.Compare(deviceKey(a), deviceKey(b))
}

// deviceKey has the facts of a device. Drivers that are equal number by number are equal in it.
func deviceKey(a artifact.NodeAccelerator) string {
	return strings.Join([]string{a.Vendor, a.Product, a.Arch, a.MIG, fmt.Sprintf("%09d", a.MemoryMiB), plainVersion(a.Driver)}, "|")
}

// plainVersion is a version without needless zeros.
func plainVersion(version string) string {
	parts := strings.Split(version, ".")
	for i, part := range parts {
		if parts[i] = strings.TrimLeft(part, "0"); parts[i] == "" && part != "" {
			parts[i] = "0"
		}
	}
	for len(parts) > 1 && parts[len(parts)-1] == "0" {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}

// factsKey has the facts of a node that targets ask for, but for runtimes, which no label names.
func factsKey(n artifact.Node) string {
	parts := []string{n.OS, n.CPU.Arch, n.CPU.Level, strings.Join(n.CPU.Features, ",")}
	for _, a := range n.Accelerators {
		parts = append(parts, deviceKey(a))
	}
	return strings.Join(parts, "\n")
}
