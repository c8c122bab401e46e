package build

import (
	"cmp"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// checkTied holds what an engine says of itself against what was asked for. It is read
// here, from the bytes, and not taken from the driver that made them: a compiler that
// falls back to the machine that it runs on does not know that it did.
func checkTied(e plan.Engine, profile toolchain.Profile, files []toolchain.OutputFile) (tie.Tie, error) {
	for _, f := range files {
		if f.Name == profile.Entry {
			required, err := tie.Open(f.Path, profile.Reading.Tie)
			if err != nil {
				return required, err
			}
			return required, compareTied(e, profile, required)
		}
	}
	return tie.Tie{}, registry.Errorf(registry.CodeInternal, "the compiler left no %s", profile.Entry)
}

func compareTied(e plan.Engine, profile toolchain.Profile, required tie.Tie) error {
	if why := run.TooOld(e.Target, profile, required); why != "" {
		return registry.Errorf(registry.CodeInvalid, "%s", why)
	}
	asked := func(name string) string { text, _ := e.Compile[name].(string); return text }
	if why := run.NeedsDriver(e.Target, required); why != "" {
		return registry.Errorf(registry.CodeInvalid, "%s", why)
	}
	device, arch, where := required.Backend, asked("arch"), cmp.Or(asked("device"), profile.Device)
	if profile.Devices != nil {
		device = profile.Devices[required.Backend]
	}
	if arch == "" {
		arch = asked("cpu")
	}
	for _, c := range []struct{ what, is, want string }{
		{"runtime version", required.Runtime, e.Toolchain.Version},
		{"instruction set", required.Instructions, asked("isa")},
		{"device", device, where},
		{"architecture", required.Arch, arch},
		{"architecture", required.Host, asked("cpu")}, // of the processor beside a device
	} {
		if c.is != "" && c.is != c.want {
			return registry.Errorf(registry.CodeInvalid,
				"the engine says of itself that it is for %s %s, and target %s asks for %s: build it on a machine that has that, or ask for what it is",
				c.what, c.is, e.Target.Name, c.want)
		}
	}
	return nil
}
