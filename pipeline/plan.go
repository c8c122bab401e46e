package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// How the reference and engines are run: every number that a report rests on.
const (
	hub        = "onnxruntime" // the toolchain that runs the reference and quantizes it
	runThreads = 1
	hubFile    = "model.onnx"
	hubFormat  = "onnx"
)

// Plan is what a build makes: the spec with every default and preset written out, and
// digests in place of paths. Equal plans make equal releases on one class of machine.
type Plan struct {
	Model              string               `json:"model"`
	Version            string               `json:"version"`
	Source             registry.Digest      `json:"source"` // of the file that the spec names
	Import             *PlannedImport       `json:"import,omitempty"`
	ReferencePrecision string               `json:"referencePrecision"`
	Quantized          string               `json:"quantized,omitempty"` // how the source came quantized: "QDQ, 12 nodes"
	Interface          validators.Interface `json:"interface"`
	Limits             validators.Limits    `json:"limits"`
	Cases              PlannedSet           `json:"cases"`
	Calibration        *PlannedSet          `json:"calibration,omitempty"`
	Assets             []PlannedFile        `json:"assets,omitempty"`
	Operators          []PlannedFile        `json:"operators,omitempty"` // libraries of operators that the model needs
	Drivers            []registry.Digest    `json:"drivers"`             // code of the drivers, which decides what they make
	Engines            []PlannedEngine      `json:"engines"`             // in canonical order
	Digest             registry.Digest      `json:"digest,omitempty"`
}

// PlannedSet is a set of cases by content.
type PlannedSet struct {
	Count  int           `json:"count"`
	Origin string        `json:"origin"`
	Labels string        `json:"labels,omitempty"`
	Files  []PlannedFile `json:"files"`
}

// PlannedFile is a file by content.
type PlannedFile struct {
	Name   string          `json:"name"`
	Digest registry.Digest `json:"digest"`
}

// PlannedEngine is an engine to make.
type PlannedEngine struct {
	Target    registry.Target     `json:"target"`
	Variant   string              `json:"variant"`
	Precision string              `json:"precision"`
	Toolchain registry.Toolchain  `json:"toolchain"`
	Quantizer *registry.Toolchain `json:"quantizer,omitempty"` // what quantizes; nil for nothing
	Quantize  map[string]any      `json:"quantize,omitempty"`  // its options; nil for none
	Compile   map[string]any      `json:"compile"`
	Tuning    *PlannedTuning      `json:"tuning,omitempty"`    // nil for none
	Form      string              `json:"form,omitempty"`      // of those that the toolchain makes; empty for the first
	Providers []registry.Provider `json:"providers,omitempty"` // execution providers of ONNX Runtime, the preferred one first
}

// Inputs is the content that a spec names, read and checked.
type Inputs struct {
	Name        string // model
	Version     string
	Model       []toolchain.Input // the model file first, then its external data
	Import      *PlannedImport    // nil for a source that is the model
	Quantized   string            // how the source is quantized already; empty for not at all
	Precision   string            // of the source; empty for fp32
	Needs       format.Need       // of the model
	Interface   validators.Interface
	Cases       cases.Set
	Calibration cases.Set
	Assets      []toolchain.Input
	Preset      string
	Limits      validators.LimitOverrides
	Engines     []RequestedEngine

	hub importedModel
}

// RequestedEngine is a target and a variant that the spec asks for.
type RequestedEngine struct {
	Target      registry.Target
	Variant     string
	Precision   string
	Quantize    map[string]any      // as the spec says; nil for none
	Quantizer   string              // name of the toolchain that quantizes; empty for none
	Toolchain   string              // name
	ToolVersion string              // version, or its first components; empty for the one there is
	Form        string              // empty for the toolchain's first
	Tuning      *toolchain.Input    // a tuning record, which has no name yet; nil for none
	Providers   []registry.Provider // empty for those of the toolchain
}

// tools are the toolchains that the engine takes.
func (r RequestedEngine) tools() []string {
	if r.Quantizer == "" {
		return []string{r.Toolchain}
	}
	return []string{r.Toolchain, r.Quantizer}
}

// Tool is a toolchain as a plan sees it: what would do the work, not what does it.
type Tool struct {
	Profile  toolchain.Profile
	Identity toolchain.Identity
	Code     []registry.Digest // of its drivers
}

// takesOperators refuses an engine whose toolchain cannot have the model's own operators.
func (p Plan) takesOperators(r RequestedEngine, tool toolchain.Profile) error {
	if len(p.Operators) == 0 || tool.Operators && r.Quantize == nil {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid, "target %s, variant %s: a model with operators of its own is built by %s alone, and not quantized", r.Target.Name, r.Variant, hub)
}

// NewPlan expands what was asked for. tools has the hub and every toolchain that a
// requested engine names. It is pure: equal arguments give equal plans.
func NewPlan(in Inputs, tools map[string]Tool) (Plan, error) {
	p := Plan{
		Model: in.Name, Version: in.Version, Source: in.Model[0].Digest,
		ReferencePrecision: cmp.Or(in.Precision, validators.PrecisionFP32), Quantized: in.Quantized,
		Interface: in.Interface, Cases: planned(in.Cases),
		Assets: plannedFiles(in.Assets), Operators: plannedFiles(in.hub.source.operators),
	}
	if p.Import = in.Import; p.Import != nil {
		p.Source = p.Import.Files[0].Digest
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		p.Drivers = append(p.Drivers, tools[name].Code...)
	}
	if len(in.Calibration.Files) > 0 {
		calibration := planned(in.Calibration)
		p.Calibration = &calibration
	}
	var precisions []string
	for _, requested := range in.Engines {
		for _, name := range requested.tools() {
			if _, ok := tools[name]; !ok {
				return Plan{}, registry.Lastingf(registry.CodeUnavailable,
					"target %s asks for %s, which is not open", requested.Target.Name, name)
			}
		}
		if err := p.takesOperators(requested, tools[requested.Toolchain].Profile); err != nil {
			return Plan{}, err
		}
		engine, err := planEngine(requested, tools, in)
		if err != nil {
			return Plan{}, err
		}
		p.Engines = append(p.Engines, engine)
		if !slices.Contains(precisions, engine.Precision) {
			precisions = append(precisions, engine.Precision)
		}
	}
	slices.SortFunc(p.Engines, func(a, b PlannedEngine) int {
		return cmp.Or(cmp.Compare(a.Target.Name, b.Target.Name),
			cmp.Compare(a.Precision, b.Precision), cmp.Compare(a.Variant, b.Variant))
	})
	var err error
	if p.Limits, err = validators.ExpandPreset(in.Preset, in.Interface, precisions, in.Limits); err != nil {
		return Plan{}, err
	}
	if p.Limits.Accuracy != nil && in.Cases.Record.Labels == "" {
		return Plan{}, registry.Errorf(registry.CodeInvalid,
			"limits.accuracy asks for labels, and the cases have none: name their tensor in cases.labels, or leave the limit out")
	}
	p.Digest, err = registry.CanonicalDigest(p)
	return p, err
}

func planEngine(requested RequestedEngine, tools map[string]Tool, in Inputs) (PlannedEngine, error) {
	t := tools[requested.Toolchain]
	tool := t.Identity
	if want := requested.ToolVersion; want != "" && tool.Version != want && !strings.HasPrefix(tool.Version, want+".") {
		return PlannedEngine{}, registry.Errorf(registry.CodeInvalid,
			"target %s asks for %s %s, and this program has %s", requested.Target.Name, tool.Name, want, tool.Version)
	}
	e := PlannedEngine{
		Target: requested.Target, Variant: requested.Variant, Precision: requested.Precision,
		Toolchain: registry.Toolchain{Name: tool.Name, Version: tool.Version, Lock: tool.Lock},
	}
	profile, err := t.Profile.In(requested.Form)
	if err != nil {
		return PlannedEngine{}, registry.Errorf(registry.CodeInvalid, "target %s: %w", requested.Target.Name, err)
	}
	if profile.ONNXRuntime && !in.Needs.Met(registry.Constraint{Exact: tool.Version}) {
		return PlannedEngine{}, registry.Errorf(registry.CodeInvalid, "target %s: the model has %s, which ONNX Runtime reads from %s on, and %s is %s: export the model for an earlier one, or choose another toolchain",
			requested.Target.Name, in.Needs.Because, in.Needs.Version, tool.Name, tool.Version)
	}
	if e.Compile, err = profile.CompileOptions(e.Target, e.Precision); err != nil {
		return PlannedEngine{}, err
	}
	if e.Form = requested.Form; e.Form != "" {
		e.Compile["form"] = e.Form
	}
	if e.Providers = requested.Providers; len(e.Providers) == 0 {
		e.Providers = profile.Providers
	} else if len(profile.Providers) == 0 {
		return PlannedEngine{}, registry.Errorf(registry.CodeInvalid,
			"target %s: %s has no execution providers: remove the key", requested.Target.Name, tool.Name)
	}
	if asked := providerOptions(e.Providers); profile.CompilesWithProviders && len(asked) > 0 {
		e.Compile["provider_options"] = asked
	}
	if e.Tuning, err = planTuning(requested, profile); err != nil {
		return PlannedEngine{}, err
	}
	if e.Target.Runtimes == nil {
		needs := registry.Constraint{Min: tool.Version}
		if profile.ExactRuntime {
			needs = registry.Constraint{Exact: tool.Version}
		}
		e.Target.Runtimes = map[string]registry.Constraint{tool.Name: needs}
	}
	if e.Quantize = planQuantize(requested, in); e.Quantize != nil {
		by := tools[requested.Quantizer].Identity
		e.Quantizer = &registry.Toolchain{Name: by.Name, Version: by.Version, Lock: by.Lock}
	}
	e.Toolchain.Options, err = registry.CanonicalDigest(map[string]any{"quantize": e.Quantize, "compile": e.Compile})
	return e, err
}

// providerOptions are what is asked of providers, by their names.
func providerOptions(providers []registry.Provider) map[string]map[string]string {
	asked := make(map[string]map[string]string)
	for _, p := range providers {
		if len(p.Options) > 0 {
			asked[p.Name] = p.Options
		}
	}
	return asked
}

func planned(cs cases.Set) PlannedSet {
	return PlannedSet{Count: cs.Record.Count, Origin: cs.Record.Origin, Labels: cs.Record.Labels, Files: plannedFiles(cs.Files)}
}

func plannedFiles(inputs []toolchain.Input) []PlannedFile {
	var files []PlannedFile
	for _, in := range inputs {
		files = append(files, PlannedFile{in.Name, in.Digest})
	}
	return files
}

// machine names the class of machine that floats are computed on.
func machine(n registry.Node) string {
	kind := n.Kind()
	for _, f := range n.CPU.Features {
		kind += "," + f
	}
	return kind
}
