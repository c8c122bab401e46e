package registry

import (
	"fmt"
	"slices"
	"strings"
)

// differsFrom says in which fact the machine of a report is none of a node type, or is "". Facts that the
// document of the type leaves open are not compared; those that it states must be equal, because
// another processor, another device or another version of the runtime takes other kernels. The
// driver and the size of memory are not compared.
func (r report) differsFrom(t Node) string {
	n := r.Node
	ran := r.Runtime.Name
	if _, has := t.Runtimes[ran]; ran != "" && len(t.Runtimes) > 0 && !has {
		return PlainText(fmt.Sprintf("the engine ran in %s, and the type has no such runtime", ran))
	}
	for _, fact := range []struct{ name, want, have string }{
		{"os", t.OS, n.OS},
		{"cpu.arch", t.CPU.Arch, n.CPU.Arch},
		{"cpu.level", t.CPU.Level, n.CPU.Level},
		{"cpu.vendor", t.CPU.Vendor, n.CPU.Vendor},
		{"cpu.model", t.CPU.Model, n.CPU.Model},
		{"cpu.features", features(t), features(n)},
		{"runtimes." + ran, t.Runtimes[ran], r.Runtime.Version},
	} {
		if fact.want != "" && fact.want != fact.have {
			return PlainText(fmt.Sprintf("%s is %q, and the type has %q", fact.name, fact.have, fact.want))
		}
	}
	archs := !slices.ContainsFunc(t.Accelerators, func(a NodeAccelerator) bool { return a.Arch == "" })
	if want, have := devices(t, archs), devices(n, archs); want != have {
		return PlainText(fmt.Sprintf("accelerators are %q, and the type has %q", have, want))
	}
	if is, want := slices.Contains(n.Notes, NoteEmulated), slices.Contains(t.Notes, NoteEmulated); is && !want {
		return "its processor is emulated"
	} else if want && !is {
		return "its processor is not emulated, and that of the type is"
	}
	return ""
}

func features(n Node) string {
	return strings.Join(slices.Sorted(slices.Values(n.CPU.Features)), " ")
}

// devices lists the accelerators of a node in one text, in the same order whatever that of the document.
func devices(n Node, archs bool) string {
	var all []string
	for _, a := range n.Accelerators {
		if !archs {
			a.Arch = ""
		}
		all = append(all, a.Vendor+" "+a.Product+" "+a.Arch+" "+a.MIG)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
