package policy

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Fit is how an engine fits a node. The zero Fit is that of an engine that the node can run and may have.
type Fit struct {
	Lacks []artifact.Mismatch // what the node does not have of what the engine needs
	Unmet []Requirement       // the requirements that are not met on such a node
}

// FitOn returns how the engine fits a node, of which unmet are the requirements that the engine does not meet everywhere.
func FitOn(e artifact.Engine, n artifact.Node, unmet []Requirement) Fit {
	return Fit{Lacks: e.Target.Match(n, n.Runtime()), Unmet: unmetOn(n, unmet)}
}

// Fits reports whether the node can run the engine and may have it.
func (f Fit) Fits() bool { return len(f.Lacks) == 0 && len(f.Unmet) == 0 }

// Why is the first reason for which the engine does not fit; empty if it fits.
func (f Fit) Why() string {
	switch {
	case len(f.Lacks) > 0:
		return f.Lacks[0].String()
	case len(f.Unmet) > 0:
		return f.Unmet[0].Detail
	}
	return ""
}

// FirstFit returns the place of the first engine that fits a node, which is the one that the node gets; -1 if none does. fits has how
// those before it fit. unmet is called only for engines that the node can run.
func FirstFit(n artifact.Node, ranked []artifact.Engine, unmet func(artifact.Engine) []Requirement) (at int, fits []Fit) {
	for i, e := range ranked {
		fit := FitOn(e, n, nil)
		if fit.Fits() {
			fit = FitOn(e, n, unmet(e))
		}
		if fit.Fits() {
			return i, fits
		}
		fits = append(fits, fit)
	}
	return -1, fits
}

// MissingRuntimes returns what the engine needs of each runtime that the node does not have at all, by name: "onnxruntime": ">= 1.30.0".
// It is nil if that is not all that speaks against the engine.
func (f Fit) MissingRuntimes() map[string]string {
	if len(f.Unmet) > 0 || len(f.Lacks) == 0 {
		return nil
	}
	missing := make(map[string]string)
	for _, m := range f.Lacks {
		if m.Runtime == "" || m.Have != "" {
			return nil
		}
		missing[m.Runtime] = m.Need
	}
	return missing
}

// NodesGet lists the engine that each node type gets of a release: the first that it can run and against which unmet lists
// nothing that holds for such a node.
func NodesGet(r artifact.Release, types []registry.Named[artifact.Node], unmet func(artifact.Engine) []Requirement) []artifact.NodeEngine {
	ranked := r.Ranked()
	objections := make(map[registry.Digest][]Requirement)
	for _, e := range ranked {
		objections[e.Digest] = unmet(e)
	}
	get := make([]artifact.NodeEngine, 0, len(types))
	for _, t := range types {
		n := artifact.NodeEngine{NodeType: t.Name}
		if at, _ := FirstFit(t.Document, ranked, func(e artifact.Engine) []Requirement { return objections[e.Digest] }); at >= 0 {
			n.Engine, n.Label = ranked[at].Digest, ranked[at].Label()
		}
		get = append(get, n)
	}
	return get
}

// Choice is the engine that a node gets of a release, and why.
type Choice struct {
	Engine  *artifact.Engine // nil: none
	Next    *artifact.Engine // the one that the node would get without it; nil: none
	Skipped []Skipped        // those that come before it
}

// Skipped is an engine that a node does not get, and the first reason.
type Skipped struct{ Label, Why string }

// Choose returns the engine that a node gets of ranked engines, as [FirstFit] does, and what speaks for it.
func Choose(n artifact.Node, ranked []artifact.Engine, unmet func(artifact.Engine) []Requirement) (c Choice) {
	at, fits := FirstFit(n, ranked, unmet)
	for i, f := range fits {
		c.Skipped = append(c.Skipped, Skipped{ranked[i].Label(), f.Why()})
	}
	if at < 0 {
		return c
	}
	c.Engine = &ranked[at]
	if next, _ := FirstFit(n, ranked[at+1:], unmet); next >= 0 {
		c.Next = &ranked[at+1+next]
	}
	return c
}

// String describes it: "v3/int8, which goes before v1/int8: it asks for more of the processor".
func (c Choice) String() string {
	text := "no engine"
	if c.Engine != nil {
		text = c.Engine.Label()
	}
	if c.Engine != nil && c.Next != nil {
		why := strings.TrimPrefix(artifact.WhyPreferred(*c.Engine, *c.Next), c.Engine.Label()+" ")
		text += fmt.Sprintf(", which goes before %s: it %s", c.Next.Label(), why)
	}
	if c.Engine != nil && c.Next == nil {
		text += ", the only one that fits and has passed"
	}
	for i, s := range c.Skipped {
		if i > 0 {
			return text + fmt.Sprintf("; and %d more would come first", len(c.Skipped)-1)
		}
		text += fmt.Sprintf("; %s would come first: %s", s.Label, s.Why)
	}
	return text
}
