package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// DraftOptions say what a first spec is about.
type DraftOptions struct {
	Source  string   // path of the model's file, relative to the folder of the spec; needed
	Format  string   // of the source; empty for ONNX
	Origin  *Origin  // of a source that was fetched; nil for others
	Trusted []string // types in a skops file that may be loaded
	// TrustPickle is true if the pickles in the source may be loaded.
	TrustPickle bool
	Interface   validators.Interface // the zero Interface leaves shapes out
	Target      string               // "linux/arm64"; empty means linux/amd64/v1
	Cases       string               // folder of recorded cases; empty generates some
	Labels      string               // their tensor of labels; empty without any
	Accuracy    string               // the limit on accuracy, in YAML; empty for none
	NoAccuracy  string               // why there is none although there are labels; may be empty
	Quantized   string               // precision of a model that stays as it is, such as one that is quantized already; empty if it does not
	Toolchain   string               // of the target; empty for the default
	Kinds       []DraftedKind        // of the outputs, in the order of the graph
	Sizes       string               // why open dimensions have the sizes of Interface; may be empty
	Assets      []string             // files that every engine needs, such as a tokenizer; may be empty
}

// DraftedKind is the kind that an output is guessed to be.
type DraftedKind struct {
	Output string
	validators.Guess
}

// maxDraftLines bounds a draft, so that it can be read at a glance. Two more have the origin of a model that was fetched.
const maxDraftLines = 27

// maxDraftKinds bounds the outputs whose kinds a draft says.
const maxDraftKinds = 6

// Draft writes a commented spec of at most 29 lines that [Load] accepts where the
// file is: the model is named after its file, and judged in fp32 on generated cases.
// Errors: CodeInvalid for a path that YAML cannot hold.
func Draft(o DraftOptions) ([]byte, error) {
	if o.Source == "" || !utf8.ValidString(o.Source) {
		return nil, registry.Errorf(registry.CodeInvalid, "model file %q: want a path in UTF-8", o.Source)
	}
	if o.Target == "" {
		o.Target = "linux/amd64/v1"
	}
	source := strings.ReplaceAll(o.Source, `\`, "/")
	lines := []string{
		"# yaml-language-server: $schema=" + SchemaFile,
		"# What to build, and what it has to prove. `mlpromote plan` prints what follows from it.",
		"model: " + modelName(source),
		"version: 0.1.0                      # semantic version: a new one for every change of the model",
		"source: " + draftSource(o, source),
	}
	lines = append(lines, draftAssets(o.Assets)...)
	lines = append(lines, draftShapes(o.Interface, o.Sizes)...)
	lines = append(lines, draftKinds(o.Kinds)...)
	variants := []string{
		"# Precisions to build: nodes get the first. int8 takes the ranges of its numbers from typical inputs:",
		"#   variants: [fp32, int8]",
		"#   calibration: {path: calibration/}         (safetensors or npz)",
		"variants: [fp32]",
	}
	if o.Quantized != "" {
		variants = []string{
			"# The model stays as it is: no rounding is added to that of the file.",
			"variants: [{name: " + o.Quantized + ", quantize: {method: none}}]",
		}
	}
	lines = append(lines, "")
	lines = append(lines, draftCases(o)...)
	lines = append(lines, "")
	lines = append(lines, variants...)
	lines = append(lines,
		"",
		"# Machines to build for: os/arch or os/arch/level. linux/amd64/v3 needs AVX2 and is faster.",
		"targets: ["+draftTarget(o)+"]",
	)
	if len(lines) > maxDraftLines {
		return nil, registry.Errorf(registry.CodeInternal, "draft has %d lines: want at most %d", len(lines), maxDraftLines)
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// draftTarget writes the target: its name alone where the toolchain is the default.
func draftTarget(o DraftOptions) string {
	if o.Toolchain == "" {
		return o.Target
	}
	parts := strings.SplitN(o.Target, "/", 3)
	level := ""
	if len(parts) == 3 {
		level = ", level: " + parts[2]
	}
	return fmt.Sprintf("{name: %s, os: %s, cpu: {arch: %s%s}, toolchain: %s}", strings.ReplaceAll(o.Target, "/", "-"), parts[0], parts[1], level, o.Toolchain)
}

// draftSource writes the source: a path alone for an ONNX file without an origin.
func draftSource(o DraftOptions, path string) string {
	path = Quoted(path)
	if (o.Format == "" || o.Format == FormatONNX) && o.Origin == nil {
		return path
	}
	text := "{path: " + path + ", format: " + cmp.Or(o.Format, FormatONNX)
	if len(o.Trusted) > 0 {
		types := make([]string, len(o.Trusted))
		for i, t := range o.Trusted {
			types[i] = Quoted(t)
		}
		text += ", trust: {types: [" + strings.Join(types, ", ") + "]}"
	}
	if o.TrustPickle {
		text += ", trust: {pickle: true}"
	}
	if from := o.Origin; from != nil {
		text += ",\n  origin: {uri: " + Quoted(from.URI) + ", server: " + Quoted(from.Server)
		if from.Run != "" {
			text += ", run: " + Quoted(from.Run)
		}
		text += ",\n    digest: " + Quoted(from.Digest) + "}" // of the bytes that every build has to find
	}
	return text + "}"
}

// draftAssets writes the files that go along with every engine.
func draftAssets(paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = Quoted(p)
	}
	return []string{"assets: [" + strings.Join(quoted, ", ") + "]   # part of every engine"}
}

// draftCases writes the section cases.
func draftCases(o DraftOptions) []string {
	if o.Cases == "" {
		return []string{
			"# Inputs on which every engine is compared with the model. Recorded ones prove more than generated ones:",
			"#   cases: {path: cases/, labels: label}      (safetensors or npz; labels are optional)",
			"cases: {generate: 16, seed: 1}",
		}
	}
	line := "cases: {path: " + Quoted(strings.TrimSuffix(o.Cases, "/")+"/")
	if o.Labels != "" {
		line += ", labels: " + Quoted(o.Labels)
	}
	lines := []string{"# Inputs on which every engine is compared with the model.", line + "}"}
	switch {
	case o.Labels == "":
	case o.Accuracy != "":
		lines = append(lines, "limits: {accuracy: "+o.Accuracy+"}   # what an engine may lose on the labels")
	case o.NoAccuracy != "":
		lines = append(lines, "# The labels decide nothing: "+o.NoAccuracy)
	}
	return lines
}

// draftShapes writes the symbolic dimensions of the inputs with their ranges, and why it is these.
func draftShapes(i validators.Interface, why string) []string {
	var ranges []string
	for _, symbol := range (validators.Interface{Inputs: i.Inputs}).Symbols() {
		r, ok := i.Dims[symbol]
		if !ok {
			r = validators.DefaultDimRange()
		}
		if r.Validate() == nil && utf8.ValidString(symbol) {
			ranges = append(ranges, fmt.Sprintf("%s: [%d, %d, %d]", Quoted(symbol), r.Min, r.Opt, r.Max))
		}
	}
	if len(ranges) == 0 {
		return nil
	}
	lines := []string{"shapes: {" + strings.Join(ranges, ", ") + "}   # sizes to expect: [min, opt, max]"}
	if why != "" && utf8.ValidString(why) && !strings.ContainsAny(why, "\r\n") {
		lines = append([]string{"# Sizes that the graph takes: " + why + "."}, lines...)
	}
	return lines
}

// draftKinds writes what the outputs mean, and why it is guessed to be that.
func draftKinds(kinds []DraftedKind) []string {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k DraftedKind) bool { return k.Output == "" || !utf8.ValidString(k.Output) })
	switch {
	case len(kinds) == 0:
		return nil
	case len(kinds) == 1:
		return []string{fmt.Sprintf("outputs: {%s}   # guessed: %s. Limits follow from it", kinds[0].yaml(), kinds[0].Why)}
	}
	lines := []string{"outputs:                            # what they mean, guessed. Limits follow from it"}
	for _, k := range kinds[:min(len(kinds), maxDraftKinds)] {
		lines = append(lines, fmt.Sprintf("  %s   # %s", k.yaml(), k.Why))
	}
	if more := len(kinds) - maxDraftKinds; more > 0 {
		lines[0] += fmt.Sprintf("; `mlpromote plan` shows %d more", more)
	}
	return lines
}

func (k DraftedKind) yaml() string {
	return Quoted(k.Output) + ": {kind: " + string(k.Kind) + "}"
}

// plainScalar is what needs no quotes in YAML, in a flow mapping too.
var plainScalar = regexp.MustCompile(`^(\.\./)*[A-Za-z_/][A-Za-z0-9_./-]*$`)

// notText are the plain scalars that some reader of YAML takes for something else.
var notText = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// OutputKey writes the key that names an output in limits.accuracy, with the comma behind it.
func OutputKey(output string) string { return "output: " + Quoted(output) + ", " }

// Quoted writes a text so that YAML reads it as that text.
func Quoted(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains(notText, strings.ToLower(s)) {
		return s
	}
	quoted, err := json.Marshal(s) // JSON strings are YAML strings
	if err != nil {
		return `""`
	}
	return string(quoted)
}

// notNameChars is what a model's name cannot hold.
var notNameChars = regexp.MustCompile(`[^a-z0-9]+`)

// modelName makes a model's name of the name of its file.
func modelName(source string) string {
	base := path.Base(source)
	base = strings.TrimSuffix(base, path.Ext(base))
	name := strings.Trim(notNameChars.ReplaceAllString(strings.ToLower(base), "-"), "-")
	if len(name) > 100 {
		name = strings.Trim(name[:100], "-")
	}
	if registry.ValidateModel(name) != nil {
		return "model"
	}
	return Quoted(name)
}
