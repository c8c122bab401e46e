package plan

import (
	"cmp"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Part is what a builder says of the engines that one machine made of a release: in its provenance, as
// externalParameters.part.
type Part struct {
	// Key is the key of [Common].
	Key     registry.Digest `json:"key"`
	Engines []Engine        `json:"engines"` // that were made, in the order in which nodes get them
	// Tools has the code of the drivers of each toolchain that was open, by name.
	Tools map[string][]registry.Digest `json:"tools"`
}

// PartOf returns the part that a plan is, which tools decided about.
func (p Plan) PartOf(key registry.Digest, tools map[string]Tool) Part {
	part := Part{Key: key, Engines: p.Engines, Tools: make(map[string][]registry.Digest, len(tools))}
	for name, tool := range tools {
		part.Tools[name] = tool.Code
	}
	return part
}

// asked is an engine that a spec asks for, in the form that the key covers.
type asked struct {
	Target          artifact.Target       `json:"target"`
	Variant         string                `json:"variant"`
	Precision       string                `json:"precision"`
	Student         []File                `json:"student,omitempty"`
	Compress        []map[string]any      `json:"compress,omitempty"`
	Compressor      string                `json:"compressor,omitempty"`
	Quantize        map[string]any        `json:"quantize,omitempty"`
	Quantizer       string                `json:"quantizer,omitempty"`
	QuantizedInside string                `json:"quantizedInside,omitempty"`
	Toolchain       string                `json:"toolchain"`
	ToolVersion     string                `json:"toolVersion,omitempty"`
	Form            string                `json:"form,omitempty"`
	Tuning          registry.Digest       `json:"tuning,omitempty"`
	Providers       []artifact.Provider   `json:"providers,omitempty"`
	Load            *artifact.LoadProfile `json:"load,omitempty"`
}

// Common returns what all parts of a release have in common: the plan without engines and drivers, and
// the key, which is the digest of that and of everything that the spec asks for: engines are all of its engines, in the
// order in which nodes get them. It needs no toolchain.
func Common(in Inputs, engines []Requested) (p Plan, key registry.Digest, err error) {
	p = bare(in)
	if err := p.setLimits(in); err != nil {
		return Plan{}, "", err
	}
	var all []asked
	for _, r := range engines {
		a := asked{Target: r.Target, Variant: r.Variant, Precision: r.Precision, Quantize: r.Quantize, Quantizer: r.Quantizer,
			QuantizedInside: r.QuantizedInside,
			Toolchain:       r.Toolchain, ToolVersion: r.ToolVersion, Form: r.Form, Providers: r.Providers, Load: r.Load}
		if a.Compress, a.Compressor = r.Compress, r.Compressor; r.Student != nil {
			a.Student = Files(r.Student.Files)
		}
		if r.Tuning != nil {
			a.Tuning = r.Tuning.Digest
		}
		all = append(all, a)
	}
	key, err = registry.CanonicalDigest(map[string]any{"plan": p, "engines": all})
	return p, key, err
}

// Join returns the plan that parts make together of a spec's engines, in the order of those, with common as [Common] returns
// it. It is what [New] returns on a machine that has all the toolchains. Errors: CodeInvalid if two parts have a
// toolchain in different versions.
func (p Plan) Join(engines []Requested, parts ...Part) (Plan, error) {
	p.Engines, p.Drivers = nil, nil
	type version struct {
		label string
		artifact.Toolchain
	}
	versions := make(map[string]version)
	code := make(map[string][]registry.Digest)
	for _, part := range parts {
		for _, e := range part.Engines {
			before, ok := versions[e.Toolchain.Name]
			if ok && before.Version != e.Toolchain.Version {
				return Plan{}, registry.Errorf(registry.CodeInvalid,
					"%s was made by %s %s, and %s by %s: install the same version on both machines, and build one of them again",
					before.label, e.Toolchain.Name, before.Version, e.Label(), e.Toolchain.Version)
			}
			versions[e.Toolchain.Name] = version{e.Label(), e.Toolchain}
			p.Engines = append(p.Engines, e)
		}
		for name, digests := range part.Tools {
			for _, d := range digests {
				if !slices.Contains(code[name], d) {
					code[name] = append(code[name], d)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		p.Drivers = append(p.Drivers, code[name]...)
	}
	place := make(map[string]int, len(engines))
	for i, r := range engines {
		place[r.Label()] = i - len(engines) // below 0, which is the place of engines that the spec does not have
	}
	slices.SortStableFunc(p.Engines, func(a, b Engine) int { return cmp.Compare(place[a.Label()], place[b.Label()]) })
	return p.finished()
}

// Label returns the label that the engine has in its release.
func (e Engine) Label() string { return e.Target.Name + "/" + e.Variant }

// Label returns the label that the engine will have in its release.
func (r Requested) Label() string { return r.Target.Name + "/" + r.Variant }

// Makes reports whether an engine of a release is the one that the plan has.
func (e Engine) Makes(made artifact.Engine) bool {
	want, err := registry.CanonicalDigest([]any{e.Target, e.Variant, e.Precision, e.Toolchain, e.Providers, e.Load})
	if err != nil {
		return false
	}
	got, err := registry.CanonicalDigest([]any{made.Target, made.Variant, made.Precision, made.Toolchain, made.Providers, made.Load})
	return err == nil && got == want
}

// Asked reports whether an engine of a plan is the one that a spec asks for. What only toolchains decide is not
// compared: versions and options, and the runtimes and the driver of a target that names none.
func (r Requested) Asked(e Engine) bool {
	target := e.Target
	if r.Target.Runtimes == nil {
		target.Runtimes = nil
	}
	if asked, has := r.Target.Accelerator, target.Accelerator; asked != nil && has != nil && asked.Driver == nil {
		a := *has
		a.Driver, target.Accelerator = nil, &a
	}
	var student []File
	if r.Student != nil {
		student = Files(r.Student.Files)
	}
	want, err := registry.CanonicalDigest([]any{r.Target, r.Variant, r.Precision, r.Toolchain, r.Form, r.Quantize != nil, r.Load, r.Compress, student})
	if err != nil {
		return false
	}
	got, err := registry.CanonicalDigest([]any{target, e.Variant, e.Precision, e.Toolchain.Name, e.Form, e.Quantize != nil || e.Calibrated, e.Load, e.Compress, e.Student})
	return err == nil && got == want
}
