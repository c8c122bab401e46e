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
	if !slices.Contains(names, name) { // name may be that of a release, so anything
		return run.Toolchain{}, false, nil
	}
	m, err := c.manifest(name)
	if err != nil {
		return run.Toolchain{}, false, err
	}
	compiler, why := c.compiler(ctx, w, m, names, open)
	if m.Run == nil {
		return compiler, why == nil, why
	}
	runner, err := c.runner(ctx, m)
	switch {
	case registry.HasCode(why, registry.CodeInvalid):
		return run.Toolchain{}, false, why
	case err != nil && (why != nil || !registry.HasCode(err, registry.CodeUnavailable)):
		return run.Toolchain{}, false, err
	case err != nil:
		runner = toolchain.Absent(err)
	}
	// A machine may have the runner alone, as nodes do, or the compiler alone, as builders without the accelerator do.
	compiler.Engines, compiler.Timing = toolchain.Split(compiler.Engines, why, w.driver(runner, compiler.Profile.Cost)), runner
	return compiler, true, nil
}

// runner is the part of a manifest's toolchain that runs engines.
func (c Config) runner(ctx context.Context, m manifest.Manifest) (toolchain.Driver, error) {
	if m.Run.Through == "" {
		return manifest.NewRunner(ctx, m, manifest.Options{Private: c.Private})
	}
	server, err := c.server(ctx, m.Run.Through)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: run: %w", m.Name, err)
	}
	return server.Runner(m.Name, m.Run.Version)
}

// compiler is the part of a manifest's toolchain that compiles. If it cannot be had here, its tools have the profile alone.
func (c Config) compiler(ctx context.Context, w driverDeps, m manifest.Manifest, names []string, open opener) (run.Toolchain, error) {
	tools := run.Toolchain{Profile: m.Profile()}
	tools.Profile.Reading = drivers.Reading(tools.Profile.Format)
	driver, err := manifest.New(ctx, m, manifest.Options{Private: c.Private})
	if err != nil {
		return tools, err
	}
	compiling := tools
	compiling.Engines, compiling.Timing = w.driver(driver, tools.Profile.Cost), driver
	if m.Compile.From != nil {
		if err := c.chain(ctx, &compiling, *m.Compile.From, names, open); err != nil {
			return tools, err
		}
	}
	return compiling, nil
}

// manifest reads the manifest of a toolchain.
func (c Config) manifest(name string) (manifest.Manifest, error) {
	path := filepath.Join(c.Manifests, name+manifestSuffix)
	if slices.Contains(drivers.Names(), name) {
		return manifest.Manifest{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s: mlpromote has a toolchain %s of its own, and reports of the two could not be told apart", path, name),
			"give the manifest another name")
	}
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
