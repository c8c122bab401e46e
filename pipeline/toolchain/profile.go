package toolchain

import (
	"cmp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Profile is what is fixed about the engines that a toolchain makes.
type Profile struct {
	Name   string // of the toolchain, and of the runtime that a node must have: "openvino"
	Format string // of engines, as the model format is called: "onnx", "openvino-ir"
	Entry  string // the file of an engine that the runtime loads: "model.xml"
	// Level is how far the runtime optimizes an engine when it loads it, for [RunOptions];
	// empty for a runtime that has no such levels.
	Level string
	// Providers are the execution providers of ONNX Runtime that engines are for, where a
	// spec names none, the preferred one first; none for other runtimes.
	Providers []registry.Provider
	// CompilesWithProviders is true where compiling loads the model as a run will, and so is
	// told what is asked of the providers.
	CompilesWithProviders bool
	// ONNXRuntime is true where the version of the toolchain is one of ONNX Runtime.
	ONNXRuntime bool
	// Operators is true where a model may come with libraries of operators of its own.
	Operators bool
	// Forms are what else the toolchain makes of a model, where a spec asks for it.
	Forms []Form
	// NativeCode is true where an engine is or holds machine code.
	NativeCode bool
	// Alone is that of [Form].
	Alone bool
	// Tuning is what a tuning record is called that a spec may name for a target; empty where
	// the compiler takes none from people. Then no record of an earlier build is used: the
	// engine is as the spec says.
	Tuning string
	// CompileOnly is true where no driver runs the engines: others have to prove them.
	CompileOnly bool
	// ExactRuntime is true where an engine needs the version of the runtime that its
	// compiler belongs to, and no later one.
	ExactRuntime bool
	// Reproducible is what becomes of an engine that is compiled twice.
	Reproducible registry.Reproducibility
	// Cost is what a step takes of the machine, where nothing else is said.
	Cost Cost
	// CompileOptions are the options of VerbCompile for a target and precision. Errors:
	// CodeInvalid for a target that the toolchain cannot compile for.
	CompileOptions func(t registry.Target, precision string) (map[string]any, error)
}

// Form is another kind of engine of a toolchain. What it does not say is as its profile says.
type Form struct {
	Name         string // "blob"
	Format       string // empty: that of the profile
	Entry        string // empty: that of the profile
	ExactRuntime bool
	// Alone is true where an engine sets up the process that loads it, so that no other
	// engine may run there.
	Alone bool
	// CompileOptions is nil for those of the profile.
	CompileOptions func(t registry.Target, precision string) (map[string]any, error)
}

// In gives the profile of engines of a form; "" is the first kind. Errors: CodeInvalid for
// a form that there is none of, naming those there are.
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
		p.Format, p.Entry = cmp.Or(f.Format, p.Format), cmp.Or(f.Entry, p.Entry)
		p.ExactRuntime = p.ExactRuntime || f.ExactRuntime
		p.Alone = f.Alone
		if f.CompileOptions != nil {
			p.CompileOptions = f.CompileOptions
		}
		return p, nil
	}
	if len(names) == 0 {
		return Profile{}, registry.Errorf(registry.CodeInvalid,
			"form %q: %s makes one kind of engine: remove the key", form, p.Name)
	}
	return Profile{}, registry.Errorf(registry.CodeInvalid,
		"form %q: of %s there are %s", form, p.Name, strings.Join(names, ", "))
}

// Entries are the files that runtimes load, of all forms, each with its profile.
func (p Profile) Entries() map[string]Profile {
	entries := map[string]Profile{p.Entry: p}
	for _, f := range p.Forms {
		if of, err := p.In(f.Name); err == nil && entries[of.Entry].Entry == "" {
			entries[of.Entry] = of
		}
	}
	return entries
}
