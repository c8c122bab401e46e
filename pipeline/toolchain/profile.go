package toolchain

import (
	"cmp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// Profile has the fixed properties of the engines of a toolchain.
type Profile struct {
	Name   string // of the toolchain, and of the runtime that a node must have: "openvino"
	Format string // format of engines: "onnx", "openvino-ir"
	Entry  string // the file of an engine that the runtime loads: "model.xml"
	// Reading is how this program reads the entry.
	Reading Reading
	// Devices are the values of the compile option "device" by the backend that an engine names in its bytes. Nil if both have the
	// same names.
	Devices map[string]string
	// Device is the device of compile options that name none, as an engine names it; empty if engines do not name it either.
	Device string
	// Level is the optimization that the runtime applies when it loads a model for a fixed run,
	// for [RunOptions]; empty for runtimes without levels.
	Level string
	// Providers are the default execution providers of ONNX Runtime, for specs that name none,
	// the preferred one first. Empty for other runtimes.
	Providers []artifact.Provider
	// CompilesWithProviders is true if the compiler loads the model like a run does, and so
	// also gets the options of the providers.
	CompilesWithProviders bool
	// ONNXRuntime is true if the version of the toolchain is a version of ONNX Runtime.
	ONNXRuntime bool
	// Operators is true if models may have operator libraries.
	Operators bool
	// Forms are other kinds of engines of the toolchain, which a spec can select.
	Forms []Form
	// NativeCode is true if an engine is or contains machine code.
	NativeCode bool
	// Alone is as in [Form].
	Alone bool
	// Tuning is the name of the tuning record that a spec may set for a target; empty if the
	// compiler accepts none. With such a record, records of earlier builds are not used.
	Tuning string
	// Intermediate is as in [Form].
	Intermediate bool
	// Calibrated is as in [Form].
	Calibrated bool
	// Sizes is true if the compiler wants the sizes of symbolic dimensions: its option "sizes" has
	// [min, opt, max] by symbol.
	Sizes bool
	// Sources are the formats of sources that the compiler takes in place of the ONNX reference, as package spec names
	// them. The reference still judges its engines. Empty for compilers of ONNX.
	Sources []string
	// Quantizes are those of them whose models the compiler quantizes by itself, by the methods dynamic-int8 and weights-int8 of its
	// option "quantize".
	Quantizes []string
	// NeedsDevice is true if an engine for an accelerator can only be compiled where there is one.
	NeedsDevice bool
	// CompileOnly is true if no driver can run the engines. They must then be verified with
	// other means.
	CompileOnly bool
	// OwnRunner is true if a program of the user runs the engines. It never gets labels or recorded outputs.
	OwnRunner bool
	// Server is the name of the model server that runs the engines; empty for others.
	Server string
	// ExactRuntime is true if an engine needs exactly the version of the runtime that belongs
	// to its compiler, not a later one.
	ExactRuntime bool
	// Reproducible says whether two compilations give equal bytes, equal outputs, or neither.
	Reproducible evidence.Reproducibility
	// Cost is the default cost of a step.
	Cost Cost
	// Spinning is the load option with the number of threads of a runtime whose threads wait for one another without sleeping; empty for
	// others.
	Spinning string
	// LoadsProcess is true if the options of a load profile hold for all engines of a process.
	LoadsProcess bool
	// ChannelsLast is true if the runtime may keep the channels of inner tensors last.
	ChannelsLast bool
	// KeepsFP32 is the option of a load profile, as name and value, with which the runtime keeps fp32 on processors with bf16, where by
	// itself it computes in that; empty for runtimes that keep it.
	KeepsFP32 [2]string
	// Driver returns the oldest driver of an accelerator that loads engines for a target which does not say
	// it; empty if that is not known. Nil for toolchains without such engines.
	Driver func(t artifact.Target) string
	// CompileOptions returns the options of VerbCompile for a target and precision. Errors:
	// CodeInvalid for a target that the toolchain does not support.
	CompileOptions func(t artifact.Target, precision string) (map[string]any, error)
}

// Reading is how this program reads the entry of an engine. The zero Reading is for formats that it does not know.
type Reading struct {
	// Kind is the kind of file that the entry must be. With format.Unknown it may be any that runs no code, or native code if the
	// profile says that.
	Kind format.Kind
	// Tie reads what an engine requires from its bytes. It is nil if they say nothing.
	Tie tie.Reader
	// Unpacked is true if the runtime unpacks the entry by the names in it. Tie must then find them safe before it is loaded.
	Unpacked bool
}

// Form is another kind of engine of a toolchain. Its empty fields are as in the profile.
type Form struct {
	Name         string  // "blob"
	Format       string  // empty: that of the profile
	Entry        string  // empty: that of the profile
	Reading      Reading // of Format, if that is not empty
	ExactRuntime bool
	// Alone is true if an engine configures the process that loads it, so that no other engine
	// may run in that process.
	Alone bool
	// Calibrated is true if the compiler quantizes the model itself, from calibration data. It gets the model as
	// it is, where other compilers get what a quantizer made of it.
	Calibrated bool
	// Intermediate is true for what only the compiler of another toolchain takes: see [Profile.After].
	Intermediate bool
	// CompileOptions is nil to use those of the profile.
	CompileOptions func(t artifact.Target, precision string) (map[string]any, error)
}

// In returns the profile of a form; "" is the default form. Errors: CodeInvalid for an unknown
// form, with the known ones.
func (p Profile) In(form string) (Profile, error) {
	if form == "" {
		return p, nil
	}
	var names []string
	for _, f := range p.Forms {
		if f.Name != form {
			names = append(names, f.Name)
			continue
		}
		if f.Format != "" {
			p.Format, p.Reading = f.Format, f.Reading
		}
		p.Entry = cmp.Or(f.Entry, p.Entry)
		p.ExactRuntime = p.ExactRuntime || f.ExactRuntime
		p.Alone, p.Intermediate, p.Calibrated = f.Alone, f.Intermediate, f.Calibrated
		if f.CompileOptions != nil {
			p.CompileOptions = f.CompileOptions
		}
		return p, nil
	}
	if len(names) == 0 {
		return Profile{}, registry.Errorf(registry.CodeInvalid,
			"form %q: %s has only one kind of engine: remove the key", form, p.Name)
	}
	return Profile{}, registry.Errorf(registry.CodeInvalid,
		"form %q: want one of the forms of %s: %s", form, p.Name, strings.Join(names, ", "))
}

// Entries returns the files that runtimes load, for all forms, with their profiles.
func (p Profile) Entries() map[string]Profile {
	entries := map[string]Profile{p.Entry: p}
	for _, f := range p.Forms {
		if of, err := p.In(f.Name); err == nil && entries[of.Entry].Entry == "" {
			entries[of.Entry] = of
		}
	}
	return entries
}
