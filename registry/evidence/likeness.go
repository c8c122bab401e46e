package evidence

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
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
	return artifact.CompareVersions(a, b) == 0 || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

func (f fact) same() bool { return slices.Equal(f.report, f.node) }

// factFeatures names the one fact that documents may state in part: labels and queries have some features of a processor.
const factFeatures = "cpu.features"

// partOf reports whether a node may have all features of the report, and states some of them.
func (f fact) partOf(n artifact.Node) bool {
	return f.name == factFeatures && n.Source != artifact.SourceMachine && len(f.report) > 0 && len(f.node) > 0 && !f.same() &&
		!slices.ContainsFunc(strings.Fields(f.node[0]), func(s string) bool { return !slices.Contains(strings.Fields(f.report[0]), s) })
}

// factLibrary names the one fact that node documents never state.
const factLibrary = "library"

// facts compares the machine of a report with another one that loads engines with a runtime. It is the only place that knows
// which facts matter.
func (r Report) facts(n artifact.Node, ran RuntimeUsed) []fact {
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
		arch := func(a artifact.NodeAccelerator) string { return a.Arch }
		driver := func(a artifact.NodeAccelerator) string { return a.Driver }
		all = append(all, fact{name: "accelerator.arch", report: ofDevices(is, arch), node: ofDevices(n, arch), decides: true},
			fact{name: "accelerator.driver", report: ofDevices(is, driver), node: ofDevices(n, driver), decides: true})
	}
	return all
}

// AlikeMachine reports whether two reports about an engine are from machines of one kind: every fact is the same, and those that decide
// are stated. accelerated is true of an engine for an accelerator.
// Of a model server in place of a runtime, the name is enough: one that was mended has another version.
func (a ReportHead) AlikeMachine(b ReportHead, accelerated bool) bool {
	if a.Runtime.isServer() && b.Runtime.isServer() && a.Runtime.Name == b.Runtime.Name {
		a.Runtime = b.Runtime
	}
	facts := Report{ReportHead: a, accelerated: accelerated}.facts(b.Node, b.Runtime)
	return a.Runtime.Name == b.Runtime.Name && !slices.ContainsFunc(facts, func(f fact) bool { return !f.same() || f.decides && len(f.report) == 0 })
}

// on compares the facts of the report with a node and its version of the report's runtime.
func (r Report) on(n artifact.Node) []fact {
	return r.facts(n, RuntimeUsed{Name: r.Runtime.Name, Version: n.Runtimes[r.Runtime.Name]})
}

// keepsFrom reports whether a report that did not pass keeps its engine from a node: unless both state a fact that decides, and
// differently. A report that cannot be read can be from any machine.
func (r Report) keepsFrom(n artifact.Node) bool {
	return r.Fault != nil || !slices.ContainsFunc(r.on(n), func(f fact) bool { return f.decides && f.differs() && !f.partOf(n) })
}

// WhyKeptFrom says why a report that did not pass keeps its engine from a node; empty if it does not.
func (r Report) WhyKeptFrom(n artifact.Node) string {
	if !r.keepsFrom(n) {
		return ""
	}
	if open := r.unstated(n); open != "" {
		return fmt.Sprintf("%s; the node may be like the machine of that report: it does not state %s", r.Failure(), registry.PlainText(open))
	}
	return r.Failure() + "; the node is like the machine of that report"
}

// unstated names the deciding facts that the report states and the node does not.
func (r Report) unstated(n artifact.Node) string {
	var names []string
	for _, f := range r.on(n) {
		if f.decides && f.name != factLibrary && len(f.report) > 0 && (len(f.node) == 0 || f.partOf(n)) {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// Kept describes the nodes that a report keeps its engine from: "nodes with cpu.features avx2 fma, runtimes.onnxruntime 1.30.0, and
// those that do not state it".
func (r Report) Kept() string {
	var said []string
	for _, f := range r.on(artifact.Node{}) {
		if f.decides && f.name != factLibrary && len(f.report) > 0 {
			said = append(said, f.name+" "+strings.Join(f.report, " or "))
		}
	}
	if r.Fault != nil || len(said) == 0 {
		return "all nodes"
	}
	return registry.PlainText("nodes with " + strings.Join(said, ", ") + ", and nodes that do not state these")
}

// DiffersFrom names the first fact in which the machine of a report does not match a node type; empty if it matches. The document of
// the type must state each deciding fact, except the library. Facts that only name the hardware must be equal if stated.
func (r Report) DiffersFrom(t artifact.Node) string {
	for _, f := range r.on(t) {
		switch {
		case f.name == factLibrary, f.same() && len(f.node) > 0, !f.decides && len(f.node) == 0:
			continue
		case f.name == "emulated" && f.report[0] == "yes":
			return "its processor is emulated"
		case f.name == "emulated":
			return "its processor is not emulated, and that of the type is"
		case len(f.node) == 0:
			return registry.PlainText(fmt.Sprintf("the type does not state %s, which is %q there", f.name, strings.Join(f.report, " ")))
		case f.name == "accelerators":
			return registry.PlainText(fmt.Sprintf("accelerators are %q, and the type has %q", f.report[0], f.node[0]))
		default:
			return registry.PlainText(fmt.Sprintf("%s is %q, and the type has %q", f.name, strings.Join(f.report, " "), strings.Join(f.node, " ")))
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

func features(n artifact.Node) string {
	return strings.Join(slices.Sorted(slices.Values(n.CPU.Features)), " ")
}

func emulated(n artifact.Node) []string {
	if slices.Contains(n.Notes, artifact.NoteEmulated) {
		return []string{"yes"}
	}
	return []string{"no"}
}

// devices lists the accelerators of a node in one text, in the same order whatever that of the document.
func devices(n artifact.Node) string {
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
func ofDevices(n artifact.Node, get func(artifact.NodeAccelerator) string) []string {
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
