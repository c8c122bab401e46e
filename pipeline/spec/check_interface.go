package spec

import (
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// CheckInterface checks the names that the spec uses for dimensions, inputs and outputs against
// the model's, which are known once its source is read. The Spec must come from [Load]. Errors:
// CodeInvalid, with file:line:column for every mistake.
func (s *Spec) CheckInterface(i validators.Interface) error {
	s.checkShapes(i)
	outputs := names(i.Outputs)
	s.checkOutputs(outputs, "outputs")
	for _, output := range i.Outputs {
		if said := s.Outputs[output.Name]; said.Kind != "" {
			if err := validators.Kind(said.Kind).Check(output); err != nil {
				s.doc.At("outputs", output.Name, "kind").Problemf("%s", err.Error())
			}
		}
	}
	s.checkOutputs(outputs, "cases", "compare")
	for _, output := range slices.Sorted(maps.Keys(s.Cases.Compare)) {
		if where := s.Cases.Compare[output].Where; !slices.Contains(names(i.Inputs), where) {
			unknown(s.doc.At("cases", "compare", output, "where"), "input", where, names(i.Inputs))
		}
	}
	s.checkKeys(names(i.Inputs), "input", "cases", "inputs")
	s.checkKeys(names(i.Inputs), "input", "inputs")
	s.checkOutputs(outputs, "limits", "outputs")
	for _, precision := range slices.Sorted(maps.Keys(s.Limits.Precisions)) {
		s.checkOutputs(outputs, "limits", "precisions", precision, "outputs")
	}
	return s.doc.Err()
}

// checkShapes checks that the keys of shapes are symbolic dimensions.
func (s *Spec) checkShapes(i validators.Interface) {
	symbols := i.Symbols()
	for _, key := range s.keys("shapes") {
		input, isInput := i.Input(key.Text())
		switch {
		case slices.Contains(symbols, key.Text()):
		case len(symbols) == 0:
			key.Problemf("unknown dimension %q: every dimension of the model has a fixed size, so leave shapes out", key.Text())
		case isInput:
			key.Problemf("%q is an input, of shape %v: want the name of a dimension: %s",
				key.Text(), input.Shape, strings.Join(symbols, ", "))
		default:
			unknown(key, "dimension", key.Text(), symbols)
		}
	}
}

// checkOutputs checks the keys of the mapping at a path, which are outputs.
func (s *Spec) checkOutputs(outputs []string, path ...any) { s.checkKeys(outputs, "output", path...) }

// checkKeys checks the keys of the mapping at a path.
func (s *Spec) checkKeys(known []string, what string, path ...any) {
	for _, key := range s.keys(path...) {
		if !slices.Contains(known, key.Text()) {
			unknown(key, what, key.Text(), known)
		}
	}
}

// keys are the keys of the mapping at a path; nil where the document does not have it.
func (s *Spec) keys(path ...any) []*strictyaml.Node {
	parent := s.doc.At(path[:len(path)-1]...)
	mapping := s.doc.At(path...)
	if mapping == parent {
		return nil
	}
	var keys []*strictyaml.Node
	for _, entry := range mapping.Entries() {
		keys = append(keys, entry.Name)
	}
	return keys
}

// unknown notes that the model has no such name.
func unknown(at *strictyaml.Node, what, name string, known []string) {
	at.Problemf("unknown %s %q%s: want %s", what, name, registry.Suggest(name, known), strings.Join(known, ", "))
}

func names(tensors []validators.TensorInfo) []string {
	all := make([]string, len(tensors))
	for i, t := range tensors {
		all[i] = t.Name
	}
	return all
}
