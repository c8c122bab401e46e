package cluster

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// Conflict is a fact about which the labels of a node and its ResourceSlices differ.
type Conflict struct {
	Node  string `json:"node"`
	Fact  string `json:"fact"`
	Label string `json:"label"`
	Slice string `json:"slice"`
}

// Unread is an object that is left out, and why.
type Unread struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// member is one node of a fleet, described.
type member struct {
	name, instanceType string
	document           artifact.Node
	gaps               []Gap
	conflicts          []Conflict
}

// Describe returns the node document of one node. Errors: CodeNotFound if there is no such node; CodeInvalid if its labels
// or devices cannot be read.
func (f *Fleet) Describe(name string) (artifact.Node, error) {
	devices, _ := f.devices()
	for _, o := range f.nodes {
		if o.Metadata.Name == name {
			m, err := describe(o, devices[name])
			if err != nil {
				return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "node %s: %w", m.name, err)
			}
			return m.document, nil
		}
	}
	return artifact.Node{}, registry.Errorf(registry.CodeNotFound, "node %.200q is not among %s of the input", name, registry.Count(len(f.nodes), "node"))
}

// published is what DRA drivers publish for a node.
type published struct {
	accelerators []artifact.NodeAccelerator
	notes        []string
	err          error
}

// devices reads the slices of each node, and returns those that it leaves out.
func (f *Fleet) devices() (map[string]*published, []Unread) {
	var left []Unread
	byNode := map[string]*published{}
	newest := map[string]int64{} // generation of a pool: slices of older ones are about to be deleted
	present := map[string]int{}
	id := func(o object) string { return o.Spec.Driver + " " + o.Spec.NodeName + " " + o.Spec.Pool.Name }
	for _, o := range f.slices {
		newest[id(o)] = max(newest[id(o)], o.Spec.Pool.Generation)
	}
	for _, o := range f.slices {
		if o.Spec.Pool.Generation == newest[id(o)] {
			present[id(o)]++
		}
	}
	for _, o := range f.slices {
		of, known := driverNamed(o.Spec.Driver)
		switch {
		case !known || o.Spec.Pool.Generation != newest[id(o)]:
			continue // a network card, say
		case o.Spec.NodeName == "":
			left = append(left, Unread{"ResourceSlice " + registry.PlainText(o.Metadata.Name), "its devices belong to no single node"})
			continue
		case !f.names[registry.PlainText(o.Spec.NodeName)]:
			left = append(left, Unread{"ResourceSlice " + registry.PlainText(o.Metadata.Name), "its node is missing: " + registry.PlainText(o.Spec.NodeName)})
			continue
		}
		p := byNode[o.Spec.NodeName]
		if p == nil {
			p = &published{}
			byNode[o.Spec.NodeName] = p
		}
		if present[id(o)] < o.Spec.Pool.ResourceSliceCount {
			p.err = fmt.Errorf("pool %s of %s has %d of %d ResourceSlices: read it again in a moment",
				registry.PlainText(o.Spec.Pool.Name), of.name, present[id(o)], o.Spec.Pool.ResourceSliceCount)
		}
		p.add(of, o)
	}
	return byNode, left
}

func (p *published) add(of driver, o object) {
	omitted := 0
	for _, d := range o.Spec.Devices {
		a, ok, err := of.accelerator(d)
		switch {
		case err != nil:
			p.err = fmt.Errorf("ResourceSlice %s, device %s: %w", registry.PlainText(o.Metadata.Name), registry.PlainText(d.Name), err)
		case !ok:
			omitted++
		default:
			p.accelerators = append(p.accelerators, a)
		}
	}
	if omitted > 0 {
		note := of.vendor + ": partitions that are made on demand, and devices for virtual machines, are not listed"
		if !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
	}
}

// describe describes a node by its labels and by the devices that DRA drivers publish. Devices go before labels, because
// they are listed one by one.
func describe(o object, p *published) (member, error) {
	m := member{name: registry.PlainText(o.Metadata.Name), instanceType: registry.PlainText(o.Metadata.Labels["node.kubernetes.io/instance-type"])}
	var err error
	if m.document, err = node.FromLabels(o.Metadata.Labels); err != nil {
		return m, err
	}
	if p != nil {
		if p.err == nil && len(p.accelerators) > maxDevices {
			p.err = fmt.Errorf("more than %d devices", maxDevices)
		}
		if p.err != nil {
			return m, p.err
		}
		labelled := m.document.Accelerators
		m.document.Accelerators, m.conflicts = merge(m.name, labelled, *p)
		if len(p.accelerators) > 0 {
			m.document.Notes = nil // those of the labels are about devices that slices list
		}
		m.document.Notes = append(m.document.Notes, p.notes...)
	}
	slices.SortStableFunc(m.document.Accelerators, compareDevices)
	m.gaps = gapsOf(o, m.document)
	if m.document, err = node.Check(m.document); err != nil {
		return m, err
	}
	return m, nil
}

// merge puts published devices in place of labelled ones of the same vendor. A driver version keeps the spelling of the
// label, which is that of the driver itself: semver drops the zero of 580.105.08.
func merge(name string, labelled []artifact.NodeAccelerator, p published) ([]artifact.NodeAccelerator, []Conflict) {
	var conflicts []Conflict
	all := slices.Clone(p.accelerators)
	for _, l := range labelled {
		same := func(a artifact.NodeAccelerator) bool { return a.Vendor == l.Vendor }
		if !slices.ContainsFunc(p.accelerators, same) {
			all = append(all, l)
			continue
		}
		for i, a := range all {
			if !same(a) {
				continue
			}
			if sameVersion(a.Driver, l.Driver) {
				all[i].Driver = l.Driver
			}
			for _, fact := range [][3]string{{"driver", l.Driver, all[i].Driver}, {"product", l.Product, a.Product}, {"arch", l.Arch, a.Arch}} {
				c := Conflict{name, "accelerator." + fact[0], fact[1], fact[2]}
				if fact[1] != "" && fact[2] != "" && fact[1] != fact[2] && !slices.Contains(conflicts, c) {
					conflicts = append(conflicts, c)
				}
			}
		}
	}
	return all, conflicts
}
