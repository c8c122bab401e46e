package pipeline

import (
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// checkTied holds what an engine says of itself against what was asked for. It is read
// here, from the bytes, and not taken from the driver that made them: a compiler that
// falls back to the machine that it runs on does not know that it did.
func checkTied(e PlannedEngine, profile toolchain.Profile, files []toolchain.OutputFile) error {
	for _, f := range files {
		if f.Name != profile.Entry {
			continue
		}
		if profile.Format == hubFormat {
			return checkGraph(f.Path)
		}
		tie, err := format.OpenTie(f.Path, profile.Format)
		if err != nil {
			return err
		}
		return compareTied(e, tie)
	}
	return registry.Errorf(registry.CodeInternal, "the compiler left no %s", profile.Entry)
}

// checkGraph checks that the runtimes that the engine's target asks for read it.
func checkGraph(path string) error {
	model, err := format.OpenONNX(path, format.Limits{})
	if err != nil {
		return err
	}
	return checkVersions(model)
}

func compareTied(e PlannedEngine, tie format.Tie) error {
	asked := func(name string) string { text, _ := e.Compile[name].(string); return text }
	device := map[string]string{"llvm-cpu": "local", "cuda": "cuda", "rocm": "hip"}[tie.Backend]
	arch := asked("arch")
	if device == "local" {
		arch = asked("cpu")
	}
	for _, c := range []struct{ what, is, want string }{
		{"runtime version", tie.Runtime, e.Toolchain.Version},
		{"instruction set", tie.Instructions, asked("isa")},
		{"device", device, asked("device")},
		{"architecture", tie.Arch, arch},
	} {
		if c.is != "" && c.is != c.want {
			return registry.Errorf(registry.CodeInvalid, "the engine says of itself that it is for %s %s, and target %s asks for %s: build it on a machine that has that, or ask for what it is",
				c.what, c.is, e.Target.Name, c.want)
		}
	}
	return nil
}
