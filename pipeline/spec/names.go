package spec

import (
	"io"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// Names gives the names of features and classes that the spec says, by input and by output. It
// reads the files that have them. The Spec must come from [Load]. Errors: CodeInvalid, with
// file:line:column.
func (s *Spec) Names() (inputs, outputs map[string][]string, err error) {
	inputs, outputs = make(map[string][]string), make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(s.Inputs)) {
		s.readNames(s.Inputs[name].Features, name, inputs, "inputs", name, "features")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Outputs)) {
		s.readNames(s.Outputs[name].Labels, name, outputs, "outputs", name, "labels")
	}
	return inputs, outputs, s.doc.Err()
}

// readNames reads the names at a place of the document.
func (s *Spec) readNames(n Names, tensor string, into map[string][]string, place ...any) {
	if n.none() {
		return
	}
	names, err := n.List, validators.CheckNames(n.List)
	if n.File.Written != "" {
		names, err = s.namesIn(n.File)
	}
	if err != nil {
		s.doc.At(place...).Problemf("%s", err)
		return
	}
	into[tensor] = names
}

func (s *Spec) namesIn(p Path) ([]string, error) {
	f, err := s.Files.Open(p.Written)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, validators.MaxNamesBytes+1))
	if err != nil {
		return nil, err
	}
	names, err := validators.ReadNames(data)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", p.Written, err)
	}
	return names, nil
}

// CheckNames checks the names that the spec says against the model's interface, with its kinds.
func (s *Spec) CheckNames(i validators.Interface) (inputs, outputs map[string][]string, err error) {
	if inputs, outputs, err = s.Names(); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if _, err := i.WithNames(map[string][]string{name: inputs[name]}, nil); err != nil {
			s.doc.At("inputs", name, "features").Problemf("%s", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if _, err := i.WithNames(nil, map[string][]string{name: outputs[name]}); err != nil {
			s.doc.At("outputs", name, "labels").Problemf("%s", err)
		}
	}
	return inputs, outputs, s.doc.Err()
}
