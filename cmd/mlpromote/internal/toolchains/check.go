package toolchains

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Checked is the result of one check of a manifest.
type Checked struct {
	Check   string `json:"check"`
	Promise string `json:"promise"`          // what the compiler and the runner must do
	Result  string `json:"result"`           // ok, fails or skipped
	Detail  string `json:"detail,omitempty"` // what happened, or why it was skipped
}

// The results of a check.
const (
	CheckOK      = "ok"
	CheckFails   = "fails"
	CheckSkipped = "skipped"
)

// CheckManifest runs the checks of package conformance on the compiler and the runner of a manifest, with a small model of our
// own, for this machine's processor and the fields in set. each is called after each check. Errors: CodeInvalid for a manifest
// that is not understood; CodeUnavailable if its programs cannot be started.
func (c Config) CheckManifest(ctx context.Context, path string, set map[string]string, each func(Checked)) ([]Checked, error) {
	folder, file := filepath.Split(path)
	name, ok := strings.CutSuffix(file, manifestSuffix)
	if !ok {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: want the path of a manifest, NAME%s", path, manifestSuffix)
	}
	if c.Manifests = filepath.Clean(folder); folder == "" {
		c.Manifests = "."
	}
	m, err := c.manifest(name)
	if err != nil {
		return nil, err
	}
	machine, err := Describe(ctx, nil)
	if err != nil {
		return nil, err
	}
	target := artifact.Target{Name: "check", OS: machine.OS, CPU: artifact.TargetCPU{Arch: machine.CPU.Arch}}
	if err := manifest.SetFields(&target, set); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--set: %w", err)
	}
	temp, err := tempdir.New("check")
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	of := &conformance.Subject{Scratch: temp.Path, CommandLine: true}
	if target.Accelerator != nil {
		of.Accelerators = []string{cmp.Or(target.Accelerator.Vendor, "nvidia")} // as in a spec
	}
	of.New = func(ctx context.Context) (toolchain.Driver, error) {
		tools, err := c.drivers(c.InstallMissing, nil, Replacements{})(ctx, name)
		return tools.Engines, err
	}
	tools, err := c.drivers(c.InstallMissing, nil, Replacements{})(ctx, name)
	if err != nil {
		return nil, err
	}
	of.Profile = tools.Profile
	if m.Run != nil {
		runtime, err := tools.Timing.Identity(ctx)
		if err != nil {
			return nil, err
		}
		of.Runtime = &runtime
	}
	if of.Options, err = of.Profile.CompileOptions(target, "fp32"); err != nil {
		return nil, registry.WithHint(err, "--set %s=VALUE sets a field of the target", strings.Join(m.TiedTo, "=VALUE --set "))
	}
	if err := of.UseSample(); err != nil {
		return nil, err
	}
	var all []Checked
	for _, check := range conformance.Checks() {
		result := Checked{Check: check.Name, Promise: check.Promise, Result: CheckOK}
		err := check.Run(ctx, of)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		switch why, skipped := errors.AsType[conformance.Skipped](err); {
		case skipped:
			result.Result, result.Detail = CheckSkipped, string(why)
		case err != nil:
			result.Result, result.Detail = CheckFails, registry.PlainText(err.Error())
		}
		all = append(all, result)
		each(result)
	}
	return all, nil
}
