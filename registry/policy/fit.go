package policy

import (
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
