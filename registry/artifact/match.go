package artifact

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Mismatch is one requirement of a target that a node or runtime does not meet.
type Mismatch struct {
	Requirement string `json:"requirement"` // "cpu.level", "runtimes.onnxruntime"
	Need        string `json:"need"`        // empty: nothing
	Have        string `json:"have"`        // empty: nothing

	Runtime string `json:"-"` // that the requirement is about; empty: another one
}

// String writes the mismatch as a clause: "cpu.level: needs v3, has v2".
func (m Mismatch) String() string {
	return fmt.Sprintf("%s: needs %s, has %s", m.Requirement, cmp.Or(m.Need, "none"), cmp.Or(m.Have, "none"))
}

// Match lists every requirement of the target that the node with the runtime does not meet, in
// the order of the document. The result is empty if they meet all.
func (t Target) Match(n Node, r Runtime) []Mismatch {
	if t.V != TargetVersion || t.unknown != "" {
		why := t.unknown
		if why == "" {
			why = "the target document has no known version"
		}
		return []Mismatch{{Requirement: "target", Need: why}}
	}
	var out []Mismatch
	differ := func(requirement, need, have string) {
		if need != have {
			out = append(out, Mismatch{Requirement: requirement, Need: need, Have: have})
		}
	}
	differ("os", t.OS, n.OS)
	differ("cpu.arch", t.CPU.Arch, n.CPU.Arch)
	if levelRank(t.CPU.Level) > levelRank(n.CPU.Level) {
		out = append(out, Mismatch{Requirement: "cpu.level", Need: t.CPU.Level, Have: n.CPU.Level})
	}
	for _, f := range t.CPU.Features {
		if !slices.Contains(n.CPU.Features, f) {
			out = append(out, Mismatch{Requirement: "cpu.features", Need: f})
		}
	}
	if t.Accelerator != nil {
		out = append(out, t.matchAccelerator(n)...)
	}
	return append(out, t.matchRuntimes(r)...)
}

// Covers reports whether every machine that meets other meets t too, whatever runtimes it has.
func (t Target) Covers(other Target) bool {
	if t.OS != other.OS || t.CPU.Arch != other.CPU.Arch || levelRank(t.CPU.Level) > levelRank(other.CPU.Level) {
		return false
	}
	for _, f := range t.CPU.Features {
		if !slices.Contains(other.CPU.Features, f) {
			return false
		}
	}
	if t.Accelerator == nil {
		return true
	}
	return other.Accelerator != nil && t.Compatibility == other.Compatibility && reflect.DeepEqual(*t.Accelerator, *other.Accelerator)
}

func (t Target) matchRuntimes(r Runtime) []Mismatch {
	var out []Mismatch
	for _, name := range registry.SortedKeys(t.Runtimes) {
		have, ok := r.Runtimes[name]
		if !ok || !t.Runtimes[name].Allows(have) {
			out = append(out, Mismatch{Requirement: "runtimes." + name, Need: t.Runtimes[name].String(), Have: have, Runtime: name})
		}
	}
	return out
}

// matchAccelerator requires Count devices that meet every requirement. If there are too few, it
// reports what the best device lacks.
func (t Target) matchAccelerator(n Node) []Mismatch {
	want := max(t.Accelerator.Count, 1)
	found := 0
	best := []Mismatch{{Requirement: "accelerator", Need: t.Accelerator.String()}}
	for i, device := range n.Accelerators {
		lacks := t.matchDevice(device)
		if len(lacks) == 0 {
			found++
		}
		if i == 0 || len(lacks) < len(best) {
			best = lacks
		}
	}
	if found >= want {
		return nil
	}
	if len(best) > 0 {
		return best
	}
	return []Mismatch{{Requirement: "accelerator.count", Need: strconv.Itoa(want), Have: strconv.Itoa(found)}}
}

func (t Target) matchDevice(d NodeAccelerator) []Mismatch {
	a := t.Accelerator
	var out []Mismatch
	differ := func(requirement, need, have string) {
		if need != have {
			out = append(out, Mismatch{Requirement: "accelerator." + requirement, Need: need, Have: have})
		}
	}
	differ("vendor", a.Vendor, d.Vendor)
	differ("mig", a.MIG, d.MIG)
	if a.Product != "" && (t.Compatibility == "" || t.Compatibility == CompatibilityExact) {
		differ("product", a.Product, d.Product)
	}
	if a.Arch != "" &&
		(t.Compatibility != CompatibilityVersionCompatible || archRank(d.Arch) < archRank(a.Arch) || archRank(a.Arch) == 0) {
		differ("arch", a.Arch, d.Arch)
	}
	if a.MemoryMiB > d.MemoryMiB {
		out = append(out,
			Mismatch{Requirement: "accelerator.memoryMiB", Need: strconv.FormatInt(a.MemoryMiB, 10), Have: strconv.FormatInt(d.MemoryMiB, 10)})
	}
	if a.Driver != nil && !a.Driver.Allows(d.Driver) {
		out = append(out, Mismatch{Requirement: "accelerator.driver", Need: a.Driver.String(), Have: d.Driver})
	}
	return out
}

// archRank orders NVIDIA compute capabilities: sm_90 is 90. Other names have rank 0.
func archRank(arch string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	if err != nil || !strings.HasPrefix(arch, "sm_") {
		return 0
	}
	return n
}

// String returns the accelerator's name for messages.
func (a TargetAccelerator) String() string {
	name := a.Product
	if name == "" {
		name = a.Arch
	}
	return strings.TrimSpace(a.Vendor + " " + name)
}

// Specificity orders targets of one toolchain for [OrderEngines]. Of two targets that a machine meets, the one with the
// higher number has more requirements and so fits the machine more closely.
func (t Target) Specificity() int {
	score := levelRank(t.CPU.Level) + 10*len(t.CPU.Features)
	if t.Accelerator != nil {
		score += 1000
		if t.Accelerator.Product != "" {
			score += 500
		}
	}
	return score
}
