package ingest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
)

// named returns the interface with the names of features and classes: those that the spec says,
// and else those that the model has. The kinds of its outputs are known. It says what it found
// and cannot use.
func named(s *spec.Spec, m Model, iface validators.Interface) (_ validators.Interface, notes []string, err error) {
	inputs, outputs, err := s.CheckNames(iface)
	if err != nil {
		return iface, nil, err
	}
	notes = m.AddNames(iface, inputs, outputs)
	iface, err = iface.WithNames(inputs, outputs)
	return iface, notes, err
}

// AddNames adds the names that the model has to those that are said. It returns which of them do
// not fit the interface.
func (m Model) AddNames(iface validators.Interface, inputs, outputs map[string][]string) (notes []string) {
	found := m.names()
	for _, name := range slices.Sorted(maps.Keys(found.Inputs)) {
		if _, said := inputs[name]; said {
			continue
		}
		if _, err := iface.WithNames(map[string][]string{name: found.Inputs[name]}, nil); err != nil {
			notes = append(notes, "the names of features in the model are left out: "+err.Error())
			continue
		}
		inputs[name] = found.Inputs[name]
	}
	for _, output := range iface.Outputs {
		classes, ok := found.Outputs[output.Name]
		if !ok && found.Classes != nil && output.Ranks() && output.Kind != validators.KindTokens && len(output.Shape) == 2 {
			classes, ok = found.Classes, true
		}
		if _, said := outputs[output.Name]; said || !ok {
			continue
		}
		if _, err := iface.WithNames(nil, map[string][]string{output.Name: classes}); err != nil {
			notes = append(notes, "the names of classes in the model are left out: "+err.Error())
			continue
		}
		notes = append(notes, sameNames(output.Name, classes)...)
		outputs[output.Name] = classes
	}
	return notes
}

// sameNames notes the first classes of an output that have the same name. Such a model is no mistake: ImageNet has two cranes.
func sameNames(output string, classes []string) []string {
	first := make(map[string]int, len(classes))
	for number, name := range classes {
		if before, ok := first[name]; ok {
			return []string{fmt.Sprintf("output %q: classes %d and %d in the model are both called %q: "+
				"tell them apart by their numbers, or name them: outputs: {%s: {labels: FILE}}", output, before, number, name, output)}
		}
		first[name] = number
	}
	return nil
}

// foundNames are names that a model has: as an importer reports them, or Classes of an ONNX graph,
// which are those of each output with one score per class.
type foundNames struct {
	Inputs  map[string][]string `json:"inputs"`
	Outputs map[string][]string `json:"outputs"`
	Classes []string            `json:"-"`
}

// names returns the names that the model has, or none.
func (m Model) names() foundNames {
	var result struct {
		Names foundNames `json:"names"`
	}
	if m.Plan != nil && json.Unmarshal(m.Step.Outcome.Result, &result) == nil && len(result.Names.Inputs)+len(result.Names.Outputs) > 0 {
		return result.Names
	}
	return foundNames{Classes: m.Model.Classes}
}

// LabelFiles is the file with the names of the interface, which every engine has. There is none for an
// interface without names. Errors: CodeInvalid if an asset is called so.
func (in Inputs) LabelFiles() ([]storage.PartFile, error) {
	labels, ok := in.Interface.Labels()
	if !ok {
		return nil, nil
	}
	data, err := labels.Document()
	if err != nil {
		return nil, err
	}
	file := run.BytesFile(validators.LabelsFile, digest.FromBytes(data), data)
	file.Kind = artifact.FileAsset
	return []storage.PartFile{file}, nil
}

// checkLabelsName refuses an asset that has the name of the file with the labels.
func (in Inputs) checkLabelsName() error {
	_, ok := in.Interface.Labels()
	for _, asset := range in.Assets {
		if ok && asset.Name == validators.LabelsFile {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"assets: %s is the file that a build writes the names of classes and features to, since this model has such", validators.LabelsFile),
				"rename the asset, or leave it out and write outputs: {NAME: {labels: %s}}", validators.LabelsFile)
		}
	}
	return nil
}
