package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// maxName is how long a proposed name is, so that a label or an object of Kubernetes can have it too.
const maxName = 50

// namesOf names nodes with different facts by their devices and their processor: h100-80gb-amd64-v4. Nodes that would
// have the same name get the fact in which they differ, and else a part of the hash of their facts.
func namesOf(nodes []artifact.Node) []string {
	names := make([]string, len(nodes))
	parts := []func(artifact.Node) string{
		func(n artifact.Node) string { return baseName(n) },
		func(n artifact.Node) string {
			return devicesPart(n, func(a artifact.NodeAccelerator) string { return fmt.Sprintf("%dgb", (a.MemoryMiB+512)>>10) })
		},
		func(n artifact.Node) string {
			return devicesPart(n, func(a artifact.NodeAccelerator) string { return "driver-" + slug(plainVersion(a.Driver)) })
		},
		func(n artifact.Node) string {
			sum := sha256.Sum256([]byte(factsKey(n)))
			return hex.EncodeToString(sum[:3])
		},
	}
	var name func(same []int, prefix string, at int)
	name = func(same []int, prefix string, at int) {
		byName := map[string][]int{}
		for _, i := range same {
			full := strings.Trim(prefix+"-"+parts[at](nodes[i]), "-")
			byName[full] = append(byName[full], i)
		}
		if at > 0 && len(byName) == 1 && at+1 < len(parts) { // the fact tells none of them apart
			name(same, prefix, at+1)
			return
		}
		for _, full := range registry.SortedKeys(byName) {
			if these := byName[full]; len(these) > 1 && at+1 < len(parts) {
				name(these, full, at+1)
			} else {
				names[these[0]] = full
			}
		}
	}
	all := make([]int, len(nodes))
	for i := range all {
		all[i] = i
	}
	name(all, "", 0)
	return names
}

// baseName names the devices and the processor.
func baseName(n artifact.Node) string {
	counts, order := map[string]int{}, []string(nil)
	for _, a := range n.Accelerators {
		device := productName(a)
		if a.MIG != "" {
			device += "-" + slug(a.MIG)
		}
		if counts[device]++; counts[device] == 1 {
			order = append(order, device)
		}
	}
	slices.Sort(order)
	var parts []string
	for _, device := range order {
		if counts[device] > 1 {
			device += "-x" + strconv.Itoa(counts[device])
		}
		parts = append(parts, device)
	}
	if n.OS != "linux" {
		parts = append(parts, slug(n.OS))
	}
	parts = append(parts, slug(n.CPU.Arch))
	if n.CPU.Level != "" {
		parts = append(parts, n.CPU.Level)
	}
	if name := strings.Join(parts, "-"); len(name) <= maxName {
		return name
	}
	cpu := "-" + strings.Join(parts[len(order):], "-")
	devices := strings.Join(parts[:len(order)], "-")
	return strings.TrimRight(devices[:max(1, maxName-len(cpu))], "-.") + cpu
}

// productName is what people call a product: h100-80gb for NVIDIA-H100-80GB-HBM3.
func productName(a artifact.NodeAccelerator) string {
	var words []string
	for word := range strings.SplitSeq(slug(a.Product), "-") {
		if word != "" && word != a.Vendor && !strings.HasPrefix(word, "hbm") {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return slug(a.Vendor + "-" + a.Arch)
	}
	return strings.Join(words, "-")
}

// devicesPart is a fact of the devices of a node.
func devicesPart(n artifact.Node, of func(artifact.NodeAccelerator) string) string {
	var all []string
	for _, a := range n.Accelerators {
		if text := of(a); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "-")
}

var notInName = regexp.MustCompile(`[^a-z0-9.]+`)

// slug is a text in the letters of names.
func slug(text string) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-.")
}
