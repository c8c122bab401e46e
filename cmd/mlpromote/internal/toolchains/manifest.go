package toolchains

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/registry"
)

// manifestSuffix ends the files of manifests, whose names are those of toolchains.
const manifestSuffix = ".yaml"

// LoadSpec reads a spec, whose targets may name toolchains that manifests describe, and
// whose paths may not lead to keys or to what the data directory holds.
func (c Config) LoadSpec(file string) (*spec.Spec, error) {
	names, err := c.manifests()
	if err != nil {
		return nil, err
	}
	return spec.Load(file, spec.Options{Toolchains: names, Private: c.Private})
}

// manifests are the toolchains that the folder of manifests describes. A manifest says
// which program is started, so the folder is only what somebody named, never a default.
func (c Config) manifests() ([]string, error) {
	if c.Manifests == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(c.Manifests)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "--toolchains: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), manifestSuffix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// manifestDrivers are those of a toolchain that a manifest describes, if one does. Its compiler may
// take what another toolchain makes, which open gives.
func (c Config) manifestDrivers(ctx context.Context, w driverDeps, name string, open opener) (run.Toolchain, bool, error) {
	names, err := c.manifests()
	if err != nil {
		return run.Toolchain{}, false, err
	}
	if slices.Contains(drivers.Names(), name) || !slices.Contains(names, name) { // name may be that of a release, so anything
		return run.Toolchain{}, false, nil
	}
	m, err := c.manifest(name)
	if err != nil {
		return run.Toolchain{}, false, err
	}
	driver, err := manifest.New(ctx, m, manifest.Options{Private: c.Private})
	if err != nil {
		return run.Toolchain{}, false, err
	}
	profile := m.Profile()
	profile.Reading = drivers.Reading(profile.Format)
	tools := run.Toolchain{Profile: profile, Engines: w.driver(driver, profile.Cost), Timing: driver}
	if m.Compile.From != nil {
		err = c.chain(ctx, &tools, *m.Compile.From, names, open)
	}
	return tools, err == nil, err
}

// manifest reads the manifest of a toolchain.
func (c Config) manifest(name string) (manifest.Manifest, error) {
	path := filepath.Join(c.Manifests, name+manifestSuffix)
	m, err := manifest.Load(path)
	if err == nil && m.Name != name {
		err = registry.Errorf(registry.CodeInvalid, "%s: name is %q: want the name of the file, %q", path, m.Name, name)
	}
	return m, err
}

// chain has another toolchain compile the model before these tools do.
func (c Config) chain(ctx context.Context, tools *run.Toolchain, from manifest.From, manifests []string, open opener) error {
	name := tools.Profile.Name
	if slices.Contains(manifests, from.Toolchain) {
		first, err := c.manifest(from.Toolchain)
		if err != nil {
			return err
		}
		if first.Compile.From != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: from: %s takes no ONNX itself", name, from.Toolchain)
		}
	}
	first, err := open(ctx, from.Toolchain)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: from: %w", name, err)
	}
	by, err := first.Engines.Identity(ctx)
	if err != nil {
		return err
	}
	if tools.Profile, err = tools.Profile.After(first.Profile, from.Form, by); err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: %w", name, err)
	}
	tools.Engines = toolchain.Chain(first.Engines, tools.Engines)
	return nil
}
