package run

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// CheckTargets refuses names that are not among those of targets. Errors: CodeInvalid.
func CheckTargets(asked, targets []string) error {
	for _, name := range asked {
		if !slices.Contains(targets, name) {
			return registry.Errorf(registry.CodeInvalid, "there is no target %q: want some of %s", name, strings.Join(targets, ", "))
		}
	}
	return nil
}

// TooOld says of a target that lets in a release of ONNX Runtime which does not read the
// engine's graph what is wrong, or "".
func TooOld(t artifact.Target, profile toolchain.Profile, required tie.Tie) string {
	asked := t.Runtimes[profile.Name]
	if !profile.ONNXRuntime || required.ONNXRuntime.Met(asked) {
		return ""
	}
	return fmt.Sprintf("the engine has %s, which ONNX Runtime reads from %s on, and target %s lets in %s %s: "+
		"build it anew with this program, or export the model for an earlier one",
		required.ONNXRuntime.Because, required.ONNXRuntime.Version, t.Name, profile.Name, asked)
}

// NeedsDriver says of a target for CUDA that lets in machines on which the engine's code does not run what is
// wrong, or "". Code in PTX is compiled by the driver, for its architecture and later ones, if the driver
// knows that version. Other code runs on its architecture alone.
func NeedsDriver(t artifact.Target, required tie.Tie) string {
	a := t.Accelerator
	switch {
	case required.Backend != "cuda" || a == nil || required.Arch == "": // without code for an architecture, the runtime compiles it
		return ""
	case required.PTX == "" && t.Compatibility == artifact.CompatibilityVersionCompatible:
		return fmt.Sprintf("the engine has no PTX, so it runs on %s alone, and target %s lets in later devices (compatibility: version-compatible)",
			required.Arch, t.Name)
	case required.Driver == "" || a.Driver != nil && (artifact.Constraint{Min: required.Driver}).Covers(*a.Driver):
		return ""
	}
	have := "any driver"
	if a.Driver != nil {
		have = "driver " + a.Driver.String()
	}
	return fmt.Sprintf("the engine has code in PTX %s, which NVIDIA's drivers compile from %s on, and target %s lets in %s: ask for accelerator.driver %q",
		required.PTX, required.Driver, t.Name, have, required.Driver)
}
