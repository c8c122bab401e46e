package toolchains

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/spec"
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

// manifestDrivers are those of a toolchain that a manifest describes, if one does.
func (c Config) manifestDrivers(ctx context.Context, w driverDeps, name string) (pipeline.Toolchain, bool, error) {
	names, err := c.manifests()
	if err != nil {
		return pipeline.Toolchain{}, false, err
	}
	if slices.Contains(drivers.Names(), name) || !slices.Contains(names, name) { // name may be that of a release, so anything
		return pipeline.Toolchain{}, false, nil
	}
	path := filepath.Join(c.Manifests, name+manifestSuffix)
	m, err := manifest.Load(path)
	if err != nil {
		return pipeline.Toolchain{}, false, err
	}
	if m.Name != name {
		return pipeline.Toolchain{}, false, registry.Errorf(registry.CodeInvalid, "%s: name is %q: want the name of the file, %q", path, m.Name, name)
	}
	driver, err := manifest.New(ctx, m, manifest.Options{Private: c.Private})
	if err != nil {
		return pipeline.Toolchain{}, false, err
	}
	return pipeline.Toolchain{Profile: m.Profile(), Engines: w.driver(driver, m.Profile().Cost), Timing: driver}, true, nil
}
