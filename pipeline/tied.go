package pipeline

import (
	"cmp"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// checkTied holds what an engine says of itself against what was asked for. It is read
// here, from the bytes, and not taken from the driver that made them: a compiler that
// falls back to the machine that it runs on does not know that it did.
func checkTied(e plan.Engine, profile toolchain.Profile, files []toolchain.OutputFile) (format.Tie, error) {
	for _, f := range files {
		if f.Name == profile.Entry {
			tie, err := format.OpenTie(f.Path, profile.Reading.Tie)
			if err != nil {
				return tie, err
			}
			return tie, compareTied(e, profile, tie)
		}
	}
	return format.Tie{}, registry.Errorf(registry.CodeInternal, "the compiler left no %s", profile.Entry)
}

func compareTied(e plan.Engine, profile toolchain.Profile, tie format.Tie) error {
	if why := tooOld(e.Target, profile, tie); why != "" {
		return registry.Errorf(registry.CodeInvalid, "%s", why)
	}
	asked := func(name string) string { text, _ := e.Compile[name].(string); return text }
	if why := needsDriver(e.Target, tie); why != "" {
		return registry.Errorf(registry.CodeInvalid, "%s", why)
	}
	device, arch, where := tie.Backend, asked("arch"), cmp.Or(asked("device"), profile.Device)
	if profile.Devices != nil {
		device = profile.Devices[tie.Backend]
	}
	if arch == "" {
		arch = asked("cpu")
	}
	for _, c := range []struct{ what, is, want string }{
		{"runtime version", tie.Runtime, e.Toolchain.Version},
		{"instruction set", tie.Instructions, asked("isa")},
		{"device", device, where},
		{"architecture", tie.Arch, arch},
		{"architecture", tie.Host, asked("cpu")}, // of the processor beside a device
	} {
		if c.is != "" && c.is != c.want {
			return registry.Errorf(registry.CodeInvalid,
				"the engine says of itself that it is for %s %s, and target %s asks for %s: build it on a machine that has that, or ask for what it is",
				c.what, c.is, e.Target.Name, c.want)
		}
	}
	return nil
}

// tooOld says of a target that lets in a release of ONNX Runtime which does not read the
// engine's graph what is wrong, or "".
func tooOld(t registry.Target, profile toolchain.Profile, tie format.Tie) string {
	asked := t.Runtimes[profile.Name]
	if !profile.ONNXRuntime || tie.ONNXRuntime.Met(asked) {
		return ""
	}
	return fmt.Sprintf("the engine has %s, which ONNX Runtime reads from %s on, and target %s lets in %s %s: "+
		"build it anew with this program, or export the model for an earlier one",
		tie.ONNXRuntime.Because, tie.ONNXRuntime.Version, t.Name, profile.Name, asked)
}

// needsDriver says of a target for CUDA that lets in machines on which the engine's code does not run what is
// wrong, or "". Code in PTX is compiled by the driver, for its architecture and later ones, if the driver
// knows that version. Other code runs on its architecture alone.
func needsDriver(t registry.Target, tie format.Tie) string {
	a := t.Accelerator
	switch {
	case tie.Backend != "cuda" || a == nil || tie.Arch == "": // without code for an architecture, the runtime compiles it
		return ""
	case tie.PTX == "" && t.Compatibility == registry.CompatibilityVersionCompatible:
		return fmt.Sprintf("the engine has no PTX, so it runs on %s alone, and target %s lets in later devices (compatibility: version-compatible)",
			tie.Arch, t.Name)
	case tie.Driver == "" || a.Driver != nil && (registry.Constraint{Min: tie.Driver}).Covers(*a.Driver):
		return ""
	}
	have := "any driver"
	if a.Driver != nil {
		have = "driver " + a.Driver.String()
	}
	return fmt.Sprintf("the engine has code in PTX %s, which NVIDIA's drivers compile from %s on, and target %s lets in %s: ask for accelerator.driver %q",
		tie.PTX, tie.Driver, t.Name, have, tie.Driver)
}

// reasonRuntime is the code of reasons about runtimes that an engine's target lets in.
const reasonRuntime = "runtime"

// judgeTied finds what is wrong with the target of an engine that another builder may have
// made: a pass here would let it reach nodes that cannot load it.
func judgeTied(c candidate) ([]registry.Reason, error) {
	profile := c.tool.Profile
	for _, in := range c.model.inputs {
		if in.Name != c.model.entry || !profile.ONNXRuntime && c.engine.Target.Accelerator == nil {
			continue
		}
		tie, err := format.OpenTie(in.Path, profile.Reading.Tie)
		if err != nil {
			return nil, err
		}
		if why := cmp.Or(tooOld(c.engine.Target, profile, tie), needsDriver(c.engine.Target, tie)); why != "" {
			return []registry.Reason{{Code: reasonRuntime, Message: why}}, nil
		}
	}
	return nil, nil
}
