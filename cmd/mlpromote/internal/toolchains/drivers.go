package toolchains

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/registry"
)

// drivers gives the drivers of a toolchain, each once per run of the program. missing is
// called for one that is not installed.
func (c Config) drivers(missing WhenMissing, steps toolchain.Steps, own Replacements) opener {
	var lock sync.Mutex
	made := make(map[string]run.Toolchain)
	var pool *toolchain.ResourcePool
	var open opener
	open = func(ctx context.Context, name string) (run.Toolchain, error) {
		if tools, ok := made[name]; ok {
			return tools, nil
		}
		if pool == nil {
			var err error
			if pool, err = room(ctx); err != nil {
				return run.Toolchain{}, err
			}
		}
		w := driverDeps{steps, pool}
		installer, err := c.Installer()
		if err != nil {
			return run.Toolchain{}, err
		}
		if tools, ok, err := c.manifestDrivers(ctx, w, name, open); err != nil {
			return run.Toolchain{}, err
		} else if ok {
			made[name] = tools
			return tools, nil
		}
		execution, err := own.adopt(ctx, installer, name)
		if err != nil {
			return run.Toolchain{}, err
		}
		_, err = installer.Find(name)
		if registry.HasCode(err, registry.CodeUnavailable) {
			err = missing(ctx, installer, name)
		}
		if err != nil {
			return run.Toolchain{}, err
		}
		made[name], err = openDrivers(installer, execution, w, name)
		return made[name], err
	}
	return func(ctx context.Context, name string) (run.Toolchain, error) {
		lock.Lock()
		defer lock.Unlock()
		return open(ctx, name)
	}
}

// opener gives the drivers of a toolchain.
type opener = func(ctx context.Context, name string) (run.Toolchain, error)

// WhenMissing makes the installer find a toolchain that is not installed, or says why not.
type WhenMissing = func(ctx context.Context, installer *install.Installer, name string) error

// InstallMissing installs it, and shows its stages. Before a large install, it tells how to do without one.
func (c Config) InstallMissing(ctx context.Context, installer *install.Installer, name string) error {
	if source, err := drivers.Find(name); err == nil && source.Large != "" {
		c.UI.Note("%s", largeInstall(source))
	}
	_, err := c.Install(ctx, installer, name)
	return err
}

// largeInstall tells the size of an install before it begins.
func largeInstall(source drivers.Source) string {
	return fmt.Sprintf("%s is not installed, and takes %s: %s. The environment in which the model was trained will do: end this, and mlpromote toolchain install %s --python PATH",
		source.Install(), ui.Size(source.Installed<<20), source.Large, source.Install())
}

// openDrivers are those of a toolchain. ONNX Runtime runs in a child of our own
// program; what its Python does is quantize. The others do all their work in Python.
func openDrivers(installer *install.Installer, execution driverproc.Runner, w driverDeps, name string) (run.Toolchain, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return run.Toolchain{}, err
	}
	program := script.New(script.In(execution, script.Installed(installer, name)), driverproc.Budget{})
	tools := run.Toolchain{Profile: source.Profile, Engines: w.driver(program, source.Profile.Cost), Timing: program}
	if len(source.Imports) > 0 {
		tools.Importer, tools.Framework = w.driver(program, source.Profile.Cost), source.Package
	}
	if source.Quantizes {
		tools.Quantizer = w.driver(program, source.Profile.Cost)
	}
	if name == ort.Name {
		engines := ort.New(ort.Options{Installs: installer})
		tools.Engines, tools.Timing = w.driver(engines, source.Profile.Cost), engines
		tools.Evaluator = w.driver(program, source.Profile.Cost)
	}
	return tools, nil
}

// driverDeps is what the drivers of one run share: a memory, and the room that steps take
// of the machine.
type driverDeps struct {
	steps toolchain.Steps // nil remembers nothing
	room  *toolchain.ResourcePool
}

// room is that of this machine. Cores are those that this process may use, which GOMAXPROCS
// and the limits of a container set.
func room(ctx context.Context) (*toolchain.ResourcePool, error) {
	machine, err := Describe(ctx, nil)
	return toolchain.NewResourcePool(runtime.GOMAXPROCS(0), machine.MemoryMiB<<20, len(machine.Accelerators)), err
}

// driver is one with the memory, behind which a step that is to be done waits for room.
func (w driverDeps) driver(d toolchain.Driver, cost toolchain.Cost) toolchain.Driver {
	d = toolchain.Limit(d, w.room, cost)
	if w.steps == nil {
		return d
	}
	return toolchain.Cache(d, w.steps)
}
