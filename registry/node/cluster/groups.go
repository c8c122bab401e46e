package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Group is nodes that are alike: no target tells them apart.
type Group struct {
	Name          string        `json:"name"` // proposed for the node type
	Document      artifact.Node `json:"document"`
	Nodes         []string      `json:"nodes"`
	InstanceTypes []string      `json:"instanceTypes,omitempty"` // by the label of the cloud
	NodeTypes     []string      `json:"nodeTypes,omitempty"`     // registered ones with the same facts
	Nearest       *Nearest      `json:"nearest,omitempty"`       // registered one that differs in the fewest facts, if none is equal
	Missing       []Gap         `json:"missing,omitempty"`
	Conflicts     []Conflict    `json:"conflicts,omitempty"`
}

// Nearest is a node type with the same devices and processor architecture as a group, and the facts in which it differs.
type Nearest struct {
	NodeType string              `json:"nodeType"`
	Differs  []artifact.Mismatch `json:"differs"` // Need: the node type's; Have: the group's
}

// Report is the nodes of a fleet in groups.
type Report struct {
	Groups []Group  `json:"groups"`
	Unread []Unread `json:"unread,omitempty"` // nodes and slices that are in no group
}

// Group puts nodes that are alike together, and compares each group with the registered node types. The same fleet gives
// the same report, in whatever order it was read.
func (f *Fleet) Group(types []registry.Named[artifact.Node]) Report {
	devices, left := f.devices()
	r := Report{Groups: []Group{}, Unread: left}
	byFacts := map[string][]member{}
	for _, o := range f.nodes {
		m, err := describe(o, devices[o.Metadata.Name])
		if err != nil {
			r.Unread = append(r.Unread, Unread{"node " + m.name, registry.PlainText(err.Error())})
			continue
		}
		key := factsKey(m.document)
		byFacts[key] = append(byFacts[key], m)
	}
	var documents []artifact.Node
	for _, key := range registry.SortedKeys(byFacts) {
		g := groupOf(byFacts[key])
		g.compare(types)
		r.Groups = append(r.Groups, g)
		documents = append(documents, g.Document)
	}
	for i, name := range namesOf(documents) {
		r.Groups[i].Name = name
	}
	slices.SortFunc(r.Groups, func(a, b Group) int {
		return cmp.Or(-cmp.Compare(len(a.Nodes), len(b.Nodes)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.Unread, func(a, b Unread) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Why, b.Why)) })
	return r
}

// groupOf puts members with the same facts together. The document has the other facts only if they are the same too.
func groupOf(members []member) Group {
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	g := Group{Document: members[0].document}
	for _, m := range members {
		g.Nodes = append(g.Nodes, m.name)
		if m.instanceType != "" && !slices.Contains(g.InstanceTypes, m.instanceType) {
			g.InstanceTypes = append(g.InstanceTypes, m.instanceType)
		}
		if m.document.CPU.Vendor != g.Document.CPU.Vendor {
			g.Document.CPU.Vendor = ""
		}
		for _, gap := range m.gaps {
			if !slices.Contains(g.Missing, gap) {
				g.Missing = append(g.Missing, gap)
			}
		}
		g.Conflicts = append(g.Conflicts, m.conflicts...)
	}
	slices.Sort(g.InstanceTypes)
	return g
}

// compare finds the registered node types with the facts of the group, or else the nearest one.
func (g *Group) compare(types []registry.Named[artifact.Node]) {
	for _, t := range types {
		differs := differences(t.Document, g.Document)
		switch {
		case len(differs) == 0:
			g.NodeTypes = append(g.NodeTypes, t.Name)
		case !sameKind(t.Document, g.Document):
		case g.Nearest == nil || len(differs) < len(g.Nearest.Differs):
			g.Nearest = &Nearest{t.Name, differs}
		}
	}
	if g.NodeTypes != nil {
		g.Nearest = nil
	}
}

// sameKind reports whether two nodes have the same system, architecture and devices, though perhaps other versions.
func sameKind(a, b artifact.Node) bool {
	kind := func(n artifact.Node) string {
		var all []string
		for _, d := range n.Accelerators {
			all = append(all, d.Vendor+"/"+d.Product+"/"+d.MIG)
		}
		slices.Sort(all)
		return n.OS + "/" + n.CPU.Arch + "+" + strings.Join(all, "+")
	}
	return kind(a) == kind(b)
}

// differences lists the facts that targets ask for in which two nodes differ.
func differences(t, g artifact.Node) []artifact.Mismatch {
	var out []artifact.Mismatch
	differ := func(fact, need, have string) {
		if need != have {
			out = append(out, artifact.Mismatch{Requirement: fact, Need: need, Have: have})
		}
	}
	differ("os", t.OS, g.OS)
	differ("cpu.arch", t.CPU.Arch, g.CPU.Arch)
	differ("cpu.level", t.CPU.Level, g.CPU.Level)
	differ("cpu.features", without(t.CPU.Features, g.CPU.Features), without(g.CPU.Features, t.CPU.Features))
	for _, fact := range []struct {
		name string
		of   func(artifact.NodeAccelerator) string
	}{
		{"accelerator", func(a artifact.NodeAccelerator) string {
			return strings.TrimSpace(strings.Join([]string{a.Vendor, cmp.Or(a.Product, a.Arch), a.MIG}, " "))
		}},
		{"accelerator.arch", func(a artifact.NodeAccelerator) string { return a.Arch }},
		{"accelerator.memoryMiB", func(a artifact.NodeAccelerator) string { return memoryText(a.MemoryMiB) }},
		{"accelerator.driver", func(a artifact.NodeAccelerator) string { return plainVersion(a.Driver) }},
	} {
		differ(fact.name, devicesText(t, fact.of), devicesText(g, fact.of))
	}
	return out
}

// without is the names that only the first list has.
func without(names, others []string) string {
	var all []string
	for _, name := range names {
		if !slices.Contains(others, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// devicesText is a fact of each device of a node, sorted.
func devicesText(n artifact.Node, of func(artifact.NodeAccelerator) string) string {
	counts := map[string]int{}
	for _, a := range n.Accelerators {
		if text := of(a); text != "" {
			counts[text]++
		}
	}
	var all []string
	for _, text := range registry.SortedKeys(counts) {
		if counts[text] > 1 {
			text = strconv.Itoa(counts[text]) + " x " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func memoryText(mib int64) string {
	if mib == 0 {
		return ""
	}
	return strconv.FormatInt(mib, 10)
}
