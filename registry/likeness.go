package registry

import (
	"fmt"
	"slices"
	"strings"
)

// fact is something about the machine of a report that can change what an engine computes, and the same of another machine.
type fact struct {
	name         string
	report, node []string // what each states; empty: nothing
	// decides is true for what chooses the code that computes: features of the processor, the runtime and its library, and
	// architecture and driver of an accelerator. The other facts only name the hardware.
	decides bool
	version bool // of a runtime, which can be spelled in several ways
}

// differs reports whether both state the fact, and nothing in common.
func (f fact) differs() bool {
	return len(f.report) > 0 && len(f.node) > 0 && !slices.ContainsFunc(f.report, func(s string) bool {
		return slices.ContainsFunc(f.node, func(t string) bool { return s == t || f.version && maybeSameVersion(s, t) })
	})
}

// maybeSameVersion reports whether two spellings can be of one version: "1.30" states less than "1.30.0".
func maybeSameVersion(a, b string) bool {
	return CompareVersions(a, b) == 0 || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

func (f fact) same() bool { return slices.Equal(f.report, f.node) }

// factFeatures names the one fact that documents may state in part: labels and queries have some features of a processor.
const factFeatures = "cpu.features"

// partOf reports whether a node may have all features of the report, and states some of them.
func (f fact) partOf(n Node) bool {
	return f.name == factFeatures && n.Source != SourceMachine && len(f.report) > 0 && len(f.node) > 0 && !f.same() &&
		!slices.ContainsFunc(strings.Fields(f.node[0]), func(s string) bool { return !slices.Contains(strings.Fields(f.report[0]), s) })
}

// factLibrary names the one fact that node documents never state.
const factLibrary = "library"

// facts compares the machine of a report with another one that loads engines with a runtime. It is the only place that knows
// which facts matter.
func (r report) facts(n Node, ran RuntimeUsed) []fact {
	is := r.Node
	all := []fact{
		{name: "os", report: text(is.OS), node: text(n.OS)},
		{name: "cpu.arch", report: text(is.CPU.Arch), node: text(n.CPU.Arch)},
		{name: "cpu.level", report: text(is.CPU.Level), node: text(n.CPU.Level)},
		{name: "cpu.vendor", report: text(is.CPU.Vendor), node: text(n.CPU.Vendor)},
		{name: "cpu.model", report: text(is.CPU.Model), node: text(n.CPU.Model)},
		{name: "emulated", report: emulated(is), node: emulated(n)},
		{name: "accelerators", report: text(devices(is)), node: text(devices(n))},
		{name: factFeatures, report: text(features(is)), node: text(features(n)), decides: !r.accelerated},
		{name: "runtimes." + r.Runtime.Name, report: text(r.Runtime.Version), node: text(ran.Version), decides: true, version: true},
		{name: factLibrary, report: text(string(r.Runtime.Library.SHA256())), node: text(string(ran.Library.SHA256())), decides: true},
	}
	if r.accelerated { // an engine for the processor computes the same beside any device
		arch := func(a NodeAccelerator) string { return a.Arch }
		driver := func(a NodeAccelerator) string { return a.Driver }
		all = append(all, fact{name: "accelerator.arch", report: ofDevices(is, arch), node: ofDevices(n, arch), decides: true},
			fact{name: "accelerator.driver", report: ofDevices(is, driver), node: ofDevices(n, driver), decides: true})
	}
	return all
}

// AlikeMachine reports whether two reports about an engine are from machines of one kind: every fact is the same, and those that decide
// are stated. accelerated is true of an engine for an accelerator.
func (a ReportHead) AlikeMachine(b ReportHead, accelerated bool) bool {
	facts := report{ReportHead: a, accelerated: accelerated}.facts(b.Node, b.Runtime)
	return a.Runtime.Name == b.Runtime.Name && !slices.ContainsFunc(facts, func(f fact) bool { return !f.same() || f.decides && len(f.report) == 0 })
}

// on compares the facts of the report with a node and its version of the report's runtime.
func (r report) on(n Node) []fact {
	return r.facts(n, RuntimeUsed{Name: r.Runtime.Name, Version: n.Runtimes[r.Runtime.Name]})
}

// keepsFrom reports whether a report that did not pass keeps its engine from a node: unless both state a fact that decides, and
// differently. A report that cannot be read can be from any machine.
func (r report) keepsFrom(n Node) bool {
	return r.fault != nil || !slices.ContainsFunc(r.on(n), func(f fact) bool { return f.decides && f.differs() && !f.partOf(n) })
}

// whyKeptFrom says why a report that did not pass keeps its engine from a node; empty if it does not.
func (r report) whyKeptFrom(n Node) string {
	if !r.keepsFrom(n) {
		return ""
	}
	if open := r.unstated(n); open != "" {
		return fmt.Sprintf("%s; the node may be like the machine of that report: it does not state %s", r.failure(), PlainText(open))
	}
	return r.failure() + "; the node is like the machine of that report"
}

// unstated names the deciding facts that the report states and the node does not.
func (r report) unstated(n Node) string {
	var names []string
	for _, f := range r.on(n) {
		if f.decides && f.name != factLibrary && len(f.report) > 0 && (len(f.node) == 0 || f.partOf(n)) {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// kept describes the nodes that a report keeps its engine from: "nodes with cpu.features avx2 fma, runtimes.onnxruntime 1.30.0, and
// those that do not state it".
func (r report) kept() string {
	var said []string
	for _, f := range r.on(Node{}) {
		if f.decides && f.name != factLibrary && len(f.report) > 0 {
			said = append(said, f.name+" "+strings.Join(f.report, " or "))
		}
	}
	if r.fault != nil || len(said) == 0 {
		return "all nodes"
	}
	return PlainText("nodes with " + strings.Join(said, ", ") + ", and nodes that do not state these")
}

// differsFrom names the first fact in which the machine of a report does not match a node type; empty if it matches. The document of
// the type must state each deciding fact, except the library. Facts that only name the hardware must be equal if stated.
func (r report) differsFrom(t Node) string {
	for _, f := range r.on(t) {
		switch {
		case f.name == factLibrary, f.same() && len(f.node) > 0, !f.decides && len(f.node) == 0:
			continue
		case f.name == "emulated" && f.report[0] == "yes":
			return "its processor is emulated"
		case f.name == "emulated":
			return "its processor is not emulated, and that of the type is"
		case len(f.node) == 0:
			return PlainText(fmt.Sprintf("the type does not state %s, which is %q there", f.name, strings.Join(f.report, " ")))
		case f.name == "accelerators":
			return PlainText(fmt.Sprintf("accelerators are %q, and the type has %q", f.report[0], f.node[0]))
		default:
			return PlainText(fmt.Sprintf("%s is %q, and the type has %q", f.name, strings.Join(f.report, " "), strings.Join(f.node, " ")))
		}
	}
	return ""
}

// text is a fact of one value.
func text(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func features(n Node) string {
	return strings.Join(slices.Sorted(slices.Values(n.CPU.Features)), " ")
}

func emulated(n Node) []string {
	if slices.Contains(n.Notes, NoteEmulated) {
		return []string{"yes"}
	}
	return []string{"no"}
}

// devices lists the accelerators of a node in one text, in the same order whatever that of the document.
func devices(n Node) string {
	var all []string
	for _, a := range n.Accelerators {
		all = append(all, strings.TrimSpace(a.Vendor+" "+a.Product+" "+a.MIG))
	}
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// ofDevices lists one fact of all devices, each value once. It is empty if it is not known of one of them.
func ofDevices(n Node, get func(NodeAccelerator) string) []string {
	var all []string
	for _, a := range n.Accelerators {
		if get(a) == "" {
			return nil
		}
		all = append(all, get(a))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Kind names the class of the node's hardware, by the facts that do not decide. [ReportHead.AlikeMachine] compares all facts of two reports.
func (n Node) Kind() string {
	kind := n.OS + "/" + n.CPU.Arch + "/" + n.CPU.Level + "/" + n.CPU.Vendor + "/" + n.CPU.Model
	for _, a := range n.Accelerators {
		kind += "+" + a.Vendor + "/" + a.Product + "/" + a.MIG
	}
	return kind
}
