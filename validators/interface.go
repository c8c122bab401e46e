package validators

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// InterfaceVersion is the version of interface.json that this program reads and writes.
const InterfaceVersion = 1

// Bounds on an interface.json that is read.
const (
	maxDocumentBytes = 1 << 20
	maxTensors       = 1024
	maxRank          = 16
	maxNameBytes     = 256
	maxMeaningBytes  = 4096
)

// Interface is the inputs and outputs of a model, the same for all its engines: the content of
// interface.json. The zero Interface is invalid.
type Interface struct {
	V       int                 `json:"v"`
	Inputs  []TensorInfo        `json:"inputs"`  // in the order of the graph
	Outputs []TensorInfo        `json:"outputs"` // in the order of the graph
	Dims    map[string]DimRange `json:"dims"`    // the sizes of each symbol in a shape
	// AnyNumbers lets cases hold other numbers than those of an input of floats, such as float64 for float32: the framework
	// of the model takes them as they are, and engines take them converted. It is no part of interface.json.
	AnyNumbers bool `json:"-"`
}

// Text is the dtype of inputs that take text. Cases hold it as bytes: see [tensor.PackText].
const Text tensor.DType = "string"

// TensorInfo is one input or output.
type TensorInfo struct {
	Name    string       `json:"name"`
	DType   tensor.DType `json:"dtype"`
	Shape   []Dim        `json:"shape"`   // the slowest dimension first; empty for a scalar
	Meaning string       `json:"meaning"` // description; may be empty
	// Kind says what the values of an output mean; empty for inputs.
	Kind Kind `json:"kind,omitempty"`
	// Names are those of the classes of an output, by their numbers, or of the features along the
	// last dimension of an input. Nil if they are not known.
	Names []string `json:"names,omitempty"`
}

// Dim is one dimension of a shape: a number, or a symbol for a range of sizes. In JSON it is a
// number or a string. At most one field is set: the zero Dim is of size 0.
type Dim struct {
	Symbol string
	Size   int64
}

// DimRange is the sizes of a symbol: Opt is the size to optimize for and to measure at.
type DimRange struct {
	Min int64 `json:"min"`
	Opt int64 `json:"opt"`
	Max int64 `json:"max"`
}

// DefaultDimRange is the range of a symbol that the spec's shapes do not mention.
func DefaultDimRange() DimRange { return DimRange{Min: 1, Opt: 1, Max: 64} }

// MarshalJSON writes a number or a string.
func (d Dim) MarshalJSON() ([]byte, error) {
	if d.Symbol != "" {
		return json.Marshal(d.Symbol)
	}
	return json.Marshal(d.Size)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dim) UnmarshalJSON(data []byte) error {
	*d = Dim{}
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &d.Symbol)
	}
	return json.Unmarshal(data, &d.Size)
}

// ParseInterface parses interface.json, which must be canonical JSON (RFC 8785). Errors:
// CodeInvalid.
func ParseInterface(data []byte) (Interface, error) {
	var i Interface
	if err := parseCanonical("interface.json", data, &i, func() ([]byte, error) { return i.Encode() }); err != nil {
		return Interface{}, err
	}
	return i, nil
}

// Encode returns the interface as canonical JSON. Errors: those of Validate.
func (i Interface) Encode() ([]byte, error) {
	if err := i.Validate(); err != nil {
		return nil, err
	}
	i.Inputs, i.Outputs = filled(i.Inputs), filled(i.Outputs)
	if i.Dims == nil {
		i.Dims = map[string]DimRange{}
	}
	return registry.CanonicalJSON(i)
}

// filled replaces nil lists by empty ones, which JSON writes differently.
func filled(tensors []TensorInfo) []TensorInfo {
	out := append(make([]TensorInfo, 0, len(tensors)), tensors...)
	for i := range out {
		out[i].Shape = append([]Dim{}, out[i].Shape...)
	}
	return out
}

// Output returns an output by name.
func (i Interface) Output(name string) (TensorInfo, bool) { return find(i.Outputs, name) }

// ScoredOutput returns the output that accuracy is measured on: the first one with an answer for
// each case. Without one it returns the first output and must.
func (i Interface) ScoredOutput(must bool) (name string, ok bool) {
	for _, output := range i.Outputs {
		if output.answers() {
			return output.Name, true
		}
	}
	return i.Outputs[0].Name, must
}

// Numbers returns how many numbers the tensor has for each case; 0 if its shape does not say that.
func (t TensorInfo) Numbers() int64 {
	each := int64(1)
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		each *= d.Size // 0 for a symbol
	}
	return each
}

// Stored returns the dtype of the tensors that hold cases of an input, and how many dimensions they
// have besides the input's own and that of the cases: text takes one for its bytes.
func (t TensorInfo) Stored() (dtype tensor.DType, extra int) {
	if t.DType == Text {
		return tensor.Uint8, 1
	}
	return t.DType, 0
}

// Holds reports whether cases of an input may be tensors of a dtype, by their numbers.
func (i Interface) Holds(t TensorInfo, dtype tensor.DType) bool {
	stored, _ := t.Stored()
	return dtype == stored || i.AnyNumbers && t.DType.Class() == tensor.ClassFloat && slices.Contains(numbers, dtype)
}

// numbers are the dtypes that frameworks take.
var numbers = []tensor.DType{tensor.Float64, tensor.Float32, tensor.Float16,
	tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint64, tensor.Uint32, tensor.Uint16, tensor.Uint8}

// TakesText returns an input that takes text, if there is one.
func (i Interface) TakesText() (input string, ok bool) {
	at := slices.IndexFunc(i.Inputs, func(t TensorInfo) bool { return t.DType == Text })
	if at < 0 {
		return "", false
	}
	return i.Inputs[at].Name, true
}

// answers reports whether the output has an answer for each case, by its kind.
func (t TensorInfo) answers() bool { return t.Ranks() || t.Kind == KindClass }

// Input returns an input by name.
func (i Interface) Input(name string) (TensorInfo, bool) { return find(i.Inputs, name) }

func find(tensors []TensorInfo, name string) (TensorInfo, bool) {
	at := slices.IndexFunc(tensors, func(t TensorInfo) bool { return t.Name == name })
	if at < 0 {
		return TensorInfo{}, false
	}
	return tensors[at], true
}

// Symbols returns the symbols in the shapes, each once, in the order of the graph.
func (i Interface) Symbols() []string {
	var symbols []string
	for _, t := range slices.Concat(i.Inputs, i.Outputs) {
		for _, d := range t.Shape {
			if d.Symbol != "" && !slices.Contains(symbols, d.Symbol) {
				symbols = append(symbols, d.Symbol)
			}
		}
	}
	return symbols
}

// WithDims returns the interface with the ranges of dims, and [DefaultDimRange] for symbols
// without a range. Errors: CodeInvalid for a range of a symbol that is in no shape.
func (i Interface) WithDims(dims map[string]DimRange) (Interface, error) {
	symbols := i.Symbols()
	i.Dims = make(map[string]DimRange, len(symbols))
	for _, s := range symbols {
		i.Dims[s] = DefaultDimRange()
	}
	for s, r := range dims {
		if !slices.Contains(symbols, s) {
			return Interface{}, registry.Errorf(registry.CodeInvalid,
				"shapes: no input or output has a dimension %q: there are %s", s, list(symbols))
		}
		i.Dims[s] = r
	}
	return i, nil
}

// WithKinds returns the interface with a kind for every output: that of kinds, or else a guess.
// Errors: CodeInvalid for a kind that an output cannot be of.
func (i Interface) WithKinds(kinds map[string]Kind) (Interface, error) {
	i.Outputs = slices.Clone(i.Outputs)
	for n, output := range i.Outputs {
		kind, ok := kinds[output.Name]
		if !ok {
			kind = i.guess(output, "").Kind
		}
		if err := kind.Check(output); err != nil {
			return Interface{}, err
		}
		i.Outputs[n].Kind = kind
	}
	return i, nil
}

// Guess is what an output is guessed to be, and why.
type Guess struct {
	Kind Kind   `json:"kind"`
	Why  string `json:"why"` // "its name has logit"
}

// GuessKinds guesses the kind of every output. operators has those that make outputs, as far as they
// are known.
func (i Interface) GuessKinds(operators map[string]string) map[string]Guess {
	guesses := make(map[string]Guess, len(i.Outputs))
	for _, output := range i.Outputs {
		guesses[output.Name] = i.guess(output, operators[output.Name])
	}
	i.guessDetections(guesses)
	return guesses
}

// guess guesses the kind of an output, also from the inputs of the model.
func (i Interface) guess(output TensorInfo, operator string) Guess {
	kind, why := GuessKind(output, operator)
	if kind.Check(output) != nil { // an operator can make what it usually does not
		kind, why = GuessKind(output, "")
	}
	if !kind.Ranks() && kind != KindOther {
		return Guess{kind, why}
	}
	for _, input := range i.Inputs {
		if input.isImageOf(output) {
			return Guess{KindMask, fmt.Sprintf("its last two dimensions are those of the image %q, so that its classes are not last", input.Name)}
		}
	}
	return Guess{kind, why}
}

// isImageOf reports whether the tensor is an image with its channels in front, and the output has planes of its shape or a
// part of its size, as PyTorch lays out the classes of pixels. Else the last dimension can be that of classes.
func (t TensorInfo) isImageOf(output TensorInfo) bool {
	if len(t.Shape) != 4 || len(output.Shape) != 4 || output.DType.Class() != tensor.ClassFloat {
		return false
	}
	const mostChannels = 4 // of an image with its channels last
	height, width := t.Shape[2], t.Shape[3]
	rows, columns := output.Shape[2], output.Shape[3]
	for _, d := range []Dim{height, width} {
		if d.Symbol == "" && d.Size <= mostChannels {
			return false
		}
	}
	if columns.Symbol != "" { // the number of classes is fixed
		return true
	}
	return rows.Size > 0 && height.Size*columns.Size == rows.Size*width.Size && height.Size > 0
}

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Validate checks that the interface is complete: known dtypes, unique names, and a range for
// exactly the symbols in the shapes. Errors: CodeInvalid.
func (i Interface) Validate() error {
	if i.V != InterfaceVersion {
		return registry.Errorf(registry.CodeInvalid, "interface version %d: this program reads version %d", i.V, InterfaceVersion)
	}
	if err := validateTensors("input", i.Inputs); err != nil {
		return err
	}
	if err := validateTensors("output", i.Outputs); err != nil {
		return err
	}
	if err := i.validateKinds(); err != nil {
		return err
	}
	if err := i.validateNames(); err != nil {
		return err
	}
	symbols := i.Symbols()
	for _, s := range symbols {
		if _, ok := i.Dims[s]; !ok {
			return registry.Errorf(registry.CodeInvalid, "dimension %q of a shape has no range in dims", s)
		}
	}
	for s, r := range i.Dims {
		if !slices.Contains(symbols, s) {
			return registry.Errorf(registry.CodeInvalid, "dims: no shape has a dimension %q", s)
		}
		if err := r.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "dimension %q: %s", s, err.Error())
		}
	}
	return nil
}

func (i Interface) validateKinds() error {
	for _, t := range i.Inputs {
		if t.Kind != "" {
			return registry.Errorf(registry.CodeInvalid, "input %q: an input has no kind, and it has %.40q", t.Name, t.Kind)
		}
	}
	for _, t := range i.Outputs {
		if err := t.Kind.Check(t); err != nil {
			return err
		}
	}
	_, _, err := i.Detections()
	return err
}

// Validate checks that 0 <= Min <= Opt <= Max, and that Max is at least 1. Errors: CodeInvalid.
func (r DimRange) Validate() error {
	if r.Min < 0 || r.Opt < r.Min || r.Max < max(r.Opt, 1) || r.Max >= 1<<53 {
		return registry.Errorf(registry.CodeInvalid,
			"sizes min %d, opt %d, max %d: want 0 <= min <= opt <= max, and max at least 1", r.Min, r.Opt, r.Max)
	}
	return nil
}

func validateTensors(what string, tensors []TensorInfo) error {
	if len(tensors) == 0 || len(tensors) > maxTensors {
		return registry.Errorf(registry.CodeInvalid, "interface: %d %ss: want 1 to %d", len(tensors), what, maxTensors)
	}
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		if err := t.validate(what); err != nil {
			return err
		}
		if seen[t.Name] {
			return registry.Errorf(registry.CodeInvalid, "%s %q: defined twice", what, t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

func (t TensorInfo) validate(what string) error {
	switch {
	case !isName(t.Name):
		return registry.Errorf(registry.CodeInvalid,
			"%s name %.64q: want 1 to %d bytes of printable text", what, t.Name, maxNameBytes)
	case what == "input" && t.DType == Text:
	case !t.DType.Valid():
		_, err := tensor.ParseDType(string(t.DType))
		return registry.Errorf(registry.CodeInvalid, "%s %q: %s", what, t.Name, err.Error())
	case len(t.Shape) > maxRank:
		return registry.Errorf(registry.CodeInvalid,
			"%s %q: %d dimensions: want at most %d", what, t.Name, len(t.Shape), maxRank)
	case len(t.Meaning) > maxMeaningBytes || !utf8.ValidString(t.Meaning):
		return registry.Errorf(registry.CodeInvalid,
			"%s %q: meaning: want at most %d bytes of UTF-8", what, t.Name, maxMeaningBytes)
	}
	for axis, d := range t.Shape {
		number := d.Symbol == "" && d.Size >= 0 && d.Size < 1<<53 // what JSON numbers hold
		symbol := d.Size == 0 && isName(d.Symbol)
		if !number && !symbol {
			return registry.Errorf(registry.CodeInvalid,
				"%s %q: dimension %d: want a size or the name of a dimension", what, t.Name, axis)
		}
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && utf8.ValidString(s) && strings.IndexFunc(s,
		func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// parseCanonical decodes data into the value that encode writes, and checks that encoding it
// gives the same bytes. That refuses unknown, missing and repeated keys, and trailing data.
func parseCanonical(name string, data []byte, into any, encode func() ([]byte, error)) error {
	if len(data) > maxDocumentBytes {
		return registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", name, len(data), maxDocumentBytes)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %s", name, err.Error())
	}
	canonical, err := encode()
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %s", name, err.Error())
	}
	if !bytes.Equal(canonical, data) {
		return registry.Errorf(registry.CodeInvalid,
			"%s is not canonical JSON (RFC 8785): it was not written by this program", name)
	}
	return nil
}
