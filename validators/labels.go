package validators

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// LabelsFile is the name of the file of an engine with the names of its classes and features.
const LabelsFile = "labels.json"

// labelsVersion is the version of labels.json that this program writes and reads.
const labelsVersion = 1

// Bounds on names.
const (
	MaxNames      = 1 << 16                  // of one input or output
	MaxNamesBytes = maxDocumentBytes         // of a file of names that a spec names
	maxLabels     = 3 * maxDocumentBytes / 4 // bytes of labels.json, so that interface.json has room for the rest
	maxNamesDepth = 3
)

// Labels are the names of classes and features: the content of labels.json, which every engine
// of a release with names has as a file. It is stored as canonical JSON.
type Labels struct {
	V int `json:"v"`
	// Inputs has the names of the features along the last dimension, by input.
	Inputs map[string][]string `json:"inputs"`
	// Outputs has what the classes are called, by output: the name of class k is at k.
	Outputs map[string][]string `json:"outputs"`
}

// Labels returns the names of the interface. ok is false if it has none.
func (i Interface) Labels() (l Labels, ok bool) {
	l = Labels{V: labelsVersion, Inputs: map[string][]string{}, Outputs: map[string][]string{}}
	for _, t := range i.Inputs {
		if len(t.Names) > 0 {
			l.Inputs[t.Name] = t.Names
		}
	}
	for _, t := range i.Outputs {
		if len(t.Names) > 0 {
			l.Outputs[t.Name] = t.Names
		}
	}
	return l, len(l.Inputs)+len(l.Outputs) > 0
}

// Document returns the bytes of labels.json. Errors: CodeInvalid for names that cannot be stored.
func (l Labels) Document() ([]byte, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	data, err := registry.CanonicalJSON(l)
	if err == nil && len(data) > maxLabels {
		err = registry.Errorf(registry.CodeInvalid, "%s: %d bytes: want at most %d", LabelsFile, len(data), maxLabels)
	}
	return data, err
}

// ParseLabels parses labels.json. Errors: CodeInvalid for anything that [Labels.Document] does
// not write, and the same content in other bytes.
func ParseLabels(data []byte) (Labels, error) {
	var l Labels
	if depth(data) > maxNamesDepth {
		return Labels{}, registry.Errorf(registry.CodeInvalid, "%s: it is nested more than %d deep", LabelsFile, maxNamesDepth)
	}
	if err := parseCanonical(LabelsFile, data, &l, func() ([]byte, error) { return l.Document() }); err != nil {
		return Labels{}, err
	}
	return l, nil
}

func (l Labels) validate() error {
	if l.V != labelsVersion || l.Inputs == nil || l.Outputs == nil {
		return registry.Errorf(registry.CodeInvalid, "%s: version %d: want %d, with inputs and outputs", LabelsFile, l.V, labelsVersion)
	}
	for _, all := range []map[string][]string{l.Inputs, l.Outputs} {
		if len(all) > maxTensors {
			return registry.Errorf(registry.CodeInvalid, "%s: names of %d tensors: want at most %d", LabelsFile, len(all), maxTensors)
		}
		for tensor, names := range all {
			if !isName(tensor) {
				return registry.Errorf(registry.CodeInvalid, "%s: %.64q is no name of an input or output", LabelsFile, tensor)
			}
			if err := CheckNames(names); err != nil {
				return registry.Errorf(registry.CodeInvalid, "%s: %q: %w", LabelsFile, tensor, err)
			}
		}
	}
	return nil
}

// CheckNames checks that names can be stored: 1 to [MaxNames] of them, each 1 to 256 bytes of
// printable text. Two may be equal. Errors: CodeInvalid.
func CheckNames(names []string) error {
	if len(names) == 0 || len(names) > MaxNames {
		return registry.Errorf(registry.CodeInvalid, "%d names: want 1 to %d", len(names), MaxNames)
	}
	for at, name := range names {
		if !isName(name) {
			return registry.Errorf(registry.CodeInvalid, "name %d is %.64q: want 1 to %d bytes of printable text", at, name, maxNameBytes)
		}
	}
	return nil
}

// ReadNames reads a list of names that a person wrote: a JSON list of texts, or else one name in
// each line. Errors: CodeInvalid, also for what CheckNames refuses.
func ReadNames(data []byte) ([]string, error) {
	if len(data) > MaxNamesBytes || !utf8.Valid(data) {
		return nil, registry.Errorf(registry.CodeInvalid, "%d bytes: want at most %d of UTF-8", len(data), MaxNamesBytes)
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		var names []string
		if text != "" {
			names = strings.Split(text, "\n")
		}
		for at := range names {
			names[at] = strings.TrimSpace(names[at])
		}
		return names, CheckNames(names)
	}
	if depth([]byte(text)) > 1 {
		return nil, registry.Errorf(registry.CodeInvalid, "it is nested: want a JSON list of names, or a name in each line")
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "want a JSON list of names, or a name in each line: %w", err)
	}
	return names, CheckNames(names)
}

// depth is how deep lists and objects of a JSON text are nested. Of what is not JSON it may be
// anything.
func depth(data []byte) int {
	deepest, now, quoted := 0, 0, false
	for at := 0; at < len(data); at++ {
		switch c := data[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return deepest
}

// WithNames returns the interface with names for the features of inputs and the classes of
// outputs. Errors: CodeInvalid for names that do not fit, or of a tensor that there is not.
func (i Interface) WithNames(inputs, outputs map[string][]string) (Interface, error) {
	i.Inputs, i.Outputs = slices.Clone(i.Inputs), slices.Clone(i.Outputs)
	for _, side := range []struct {
		what    string
		tensors []TensorInfo
		names   map[string][]string
	}{{"input", i.Inputs, inputs}, {"output", i.Outputs, outputs}} {
		for tensor, names := range side.names {
			at := slices.IndexFunc(side.tensors, func(t TensorInfo) bool { return t.Name == tensor })
			if at < 0 {
				return Interface{}, registry.Errorf(registry.CodeInvalid, "names of %s %q, which the model does not have", side.what, tensor)
			}
			side.tensors[at].Names = names
		}
	}
	return i, i.validateNames()
}

func (i Interface) validateNames() error {
	for _, t := range i.Inputs {
		if err := t.checkFeatures(); err != nil {
			return err
		}
	}
	for _, t := range i.Outputs {
		if err := t.checkClasses(); err != nil {
			return err
		}
	}
	labels, ok := i.Labels()
	if !ok {
		return nil
	}
	_, err := labels.Document()
	return err
}

// checkFeatures checks the names of the features of an input: one for each place along the last
// dimension, all different.
func (t TensorInfo) checkFeatures() error {
	if t.Names == nil {
		return nil
	}
	if err := CheckNames(t.Names); err != nil {
		return registry.Errorf(registry.CodeInvalid, "input %q: features: %w", t.Name, err)
	}
	if last := t.last(); len(t.Shape) == 0 || last.Symbol == "" && last.Size != int64(len(t.Names)) {
		return registry.Errorf(registry.CodeInvalid, "input %q of shape %v: names of %s: want one for each of the last dimension",
			t.Name, t.Shape, registry.Count(len(t.Names), "feature"))
	}
	seen := make(map[string]bool, len(t.Names))
	for _, name := range t.Names {
		if seen[name] {
			return registry.Errorf(registry.CodeInvalid, "input %q: two features are called %q", t.Name, name)
		}
		seen[name] = true
	}
	return nil
}

// checkClasses checks the names of the classes of an output: as many as it has scores of classes,
// where its kind is one of scores.
func (t TensorInfo) checkClasses() error {
	if t.Names == nil {
		return nil
	}
	if err := CheckNames(t.Names); err != nil {
		return registry.Errorf(registry.CodeInvalid, "output %q: labels: %w", t.Name, err)
	}
	last := t.last()
	switch {
	case t.Kind == KindEmbedding || t.Kind == KindState:
		return registry.Errorf(registry.CodeInvalid, "output %q: kind %s has no classes, so it has no labels: want kind %s, %s or another of classes",
			t.Name, t.Kind, KindScores, KindClass)
	case (t.Ranks() || t.Kind == KindValue) && last.Symbol == "" && last.Size != int64(len(t.Names)):
		return registry.Errorf(registry.CodeInvalid, "output %q of shape %v: %s: want one for each of its %d classes",
			t.Name, t.Shape, registry.Count(len(t.Names), "label"), last.Size)
	}
	return nil
}

// CheckLabels checks that the labels.json of an engine says what the interface says. data is nil
// if the engine has no such file. An interface without names allows any. Errors: CodeTrust.
func (i Interface) CheckLabels(data []byte) error {
	labels, ok := i.Labels()
	if !ok {
		return nil
	}
	want, err := labels.Document()
	if err == nil && !bytes.Equal(want, data) {
		err = registry.Errorf(registry.CodeTrust, "its %s differs from the interface of the release: want the same names", LabelsFile)
	}
	return err
}
