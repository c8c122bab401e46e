package plan

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// ONNXRuntime is the toolchain that runs the reference model and quantizes it.
const ONNXRuntime = toolchains.Reference

// Plan lists the outputs of a build: the spec with every default and preset written out, and
// digests in place of paths. Equal plans make equal releases on one class of machine.
type Plan struct {
	Model              string               `json:"model"`
	Version            string               `json:"version"`
	Source             registry.Digest      `json:"source"` // of the file that the spec names
	Import             *Import              `json:"import,omitempty"`
	ReferencePrecision string               `json:"referencePrecision"`
	Quantized          string               `json:"quantized,omitempty"` // how the source came quantized: "QDQ, 12 nodes"
	Interface          validators.Interface `json:"interface"`
	// Guessed has the reason for the kind of an output, if the spec does not set it. It makes
	// nothing else of a build.
	Guessed     map[string]string `json:"-"`
	Limits      validators.Limits `json:"limits"`
	Cases       Set               `json:"cases"`
	Calibration *Set              `json:"calibration,omitempty"`
	Assets      []File            `json:"assets,omitempty"`
	Operators   []File            `json:"operators,omitempty"` // libraries of operators that the model needs
	Drivers     []registry.Digest `json:"drivers"`             // code of the drivers, which decides their outputs
	Engines     []Engine          `json:"engines"`             // in the order in which nodes get them
	Digest      registry.Digest   `json:"digest,omitempty"`
}

// Set is a set of cases by content.
type Set struct {
	Count  int    `json:"count"`
	Origin string `json:"origin"`
	Labels string `json:"labels,omitempty"`
	Files  []File `json:"files"`
}

// File is a file by content.
type File struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
}

// Engine is an engine to make.
type Engine struct {
	Target    artifact.Target    `json:"target"`
	Variant   string             `json:"variant"`
	Precision string             `json:"precision"`
	Toolchain artifact.Toolchain `json:"toolchain"`
	Student   []File             `json:"student,omitempty"` // the model that it is made from; nil for the reference model
	// Compressor makes that model smaller, in the steps of Compress, before it is quantized. Both are nil if nothing does.
	Compressor *artifact.Toolchain `json:"compressor,omitempty"`
	Compress   []map[string]any    `json:"compress,omitempty"`
	Quantizer  *artifact.Toolchain `json:"quantizer,omitempty"` // what quantizes; nil for nothing
	Quantize   map[string]any      `json:"quantize,omitempty"`  // its options; nil for none
	// Calibrated is true if the compiler quantizes the model by itself, from the calibration data.
	Calibrated bool                `json:"calibrated,omitempty"`
	Compile    map[string]any      `json:"compile"`
	Tuning     *Tuning             `json:"tuning,omitempty"`    // nil for none
	From       string              `json:"from,omitempty"`      // [FromSource] if it is compiled of the source; empty for the ONNX reference
	Form       string              `json:"form,omitempty"`      // of those that the toolchain makes; empty for the first
	Providers  []artifact.Provider `json:"providers,omitempty"` // execution providers of ONNX Runtime, the preferred one first
	// Load is how nodes load it; nil for the runtime's own defaults.
	Load *artifact.LoadProfile `json:"load,omitempty"`
}

// Inputs is the content that a spec names. It was read and checked.
type Inputs struct {
	Name        string // model
	Version     string
	Model       []toolchain.Input // the model file first, then its external data
	Import      *Import           // nil for a source that is the model
	Quantized   string            // how the source is quantized already; empty for not at all
	Precision   string            // of the source; empty for fp32
	Needs       onnx.Need         // of the model
	Interface   validators.Interface
	Guessed     map[string]string // reason for the kind of an output, if the spec does not set it
	Cases       cases.Set
	Calibration cases.Set
	Assets      []toolchain.Input
	Operators   []toolchain.Input // libraries of operators that the model needs
	Preset      string
	Limits      validators.LimitOverrides
	Engines     []Requested // in the order in which nodes get them: see [InOrder]
	// Others are engines of the spec that other machines make. They decide which precisions have limits.
	Others []Requested
}

// Requested is an engine that the spec asks for: a target and a variant.
type Requested struct {
	Target          artifact.Target
	Variant         string
	Precision       string
	Student         *Student              // nil for the reference model
	Compress        []map[string]any      // steps, from the spec; nil for none
	Compressor      string                // name of the toolchain that does them; empty for none
	Quantize        map[string]any        // as the spec says; nil for none
	Quantizer       string                // name of the toolchain that quantizes; empty for none
	QuantizedInside string                // method by which the compiler quantizes the source; empty if it does not
	Toolchain       string                // name
	ToolVersion     string                // version, or its first components; empty for the one there is
	Form            string                // empty for the toolchain's first
	Tuning          *toolchain.Input      // a tuning record, which has no name yet; nil for none
	Providers       []artifact.Provider   // empty for the toolchain's
	Load            *artifact.LoadProfile // nil for the runtime's own defaults
}

// Tools returns the names of the toolchains that the engine needs.
func (r Requested) Tools() []string {
	names := []string{r.Toolchain}
	for _, name := range []string{r.Compressor, r.Quantizer} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Tool describes a toolchain that would do the work.
type Tool struct {
	Profile  toolchain.Profile
	Identity toolchain.Identity
	Code     []registry.Digest // of its drivers
}

func setOf(cs cases.Set) Set {
	return Set{Count: cs.Record.Count, Origin: cs.Record.Origin, Labels: cs.Record.Labels, Files: Files(cs.Files)}
}

// Files returns the names and digests of inputs.
func Files(inputs []toolchain.Input) []File {
	var files []File
	for _, in := range inputs {
		files = append(files, File{in.Name, in.Digest})
	}
	return files
}

// Tuning is a tuning record that a spec names, by content.
type Tuning struct {
	File
	Input toolchain.Input `json:"-"`
}

// Import is how a source becomes ONNX.
type Import struct {
	Format    string             `json:"format"`
	Toolchain artifact.Toolchain `json:"toolchain"`
	Driver    registry.Digest    `json:"driver"` // its code
	Options   map[string]any     `json:"options"`
	Files     []File             `json:"files"` // of the source
}

// Student is a model of its own that a variant names in place of the source, such as a distilled one. It has the interface of the
// reference model, which its engines are compared with.
type Student struct {
	Written string            // path in the spec
	Files   []toolchain.Input // the model file first, then its external data
	Needs   onnx.Need
	Said    string // how it is quantized: "QDQ, 12 nodes"; empty for not at all
}
