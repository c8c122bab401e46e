package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/suggest"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/container"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/node"
)

// This file is the only place where the parts meet.

// with runs f on the registry that the flags name, and closes it.
func (a *app) with(ctx context.Context, f func(*wiring.Instance) error) error {
	i, err := a.at().Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(suggest.Around(ctx, &i.Registry, func() error { return f(i) }), i.Close())
}

// pipeline is the pipeline over the opened data directory. steps remembers what drivers
// do; nil remembers nothing. own are what takes the place of installs.
func (a *app) pipeline(i *wiring.Instance, steps toolchain.Steps, own replacements) *pipeline.Pipeline {
	return &pipeline.Pipeline{
		Registry: i, Parts: i.Store,
		OpenKey: func(ctx context.Context, role registry.Role) error {
			_, err := i.Keys.Signer(ctx, role)
			return err
		},
		Sign:      i.Keys.Sign,
		Toolchain: a.toolchain(a.installMissing, steps, own), ImporterOf: drivers.Importer, Node: a.describe,
		Space: a.space, Tool: a.at().Tool(), Progress: a.ui.Progress, Warn: a.ui.Warn,
	}
}

// cacheRoot is where installs and finished steps are shared between projects.
func (a *app) cacheRoot() (string, error) {
	return installed.Root(a.getenv("MLPROMOTE_CACHE"))
}

func (a *app) installer() (*install.Installer, error) {
	root, err := a.cacheRoot()
	return &install.Installer{Root: root, Python: a.getenv("MLPROMOTE_PYTHON")}, err
}

// toolchain gives the drivers of a toolchain, each once per run of the program. missing is
// called for one that is not installed.
func (a *app) toolchain(missing whenMissing, steps toolchain.Steps, own replacements) func(context.Context, string) (pipeline.Toolchain, error) {
	var lock sync.Mutex
	made := make(map[string]pipeline.Toolchain)
	var room *toolchain.ResourcePool
	return func(ctx context.Context, name string) (pipeline.Toolchain, error) {
		lock.Lock()
		defer lock.Unlock()
		if tools, ok := made[name]; ok {
			return tools, nil
		}
		if room == nil {
			var err error
			if room, err = a.room(ctx); err != nil {
				return pipeline.Toolchain{}, err
			}
		}
		w := driverDeps{steps, room}
		installer, err := a.installer()
		if err != nil {
			return pipeline.Toolchain{}, err
		}
		if tools, ok, err := a.manifestDrivers(ctx, w, name); ok || err != nil {
			made[name] = tools
			return tools, err
		}
		run, err := own.adopt(ctx, installer, name)
		if err != nil {
			return pipeline.Toolchain{}, err
		}
		_, err = installer.Find(name)
		if registry.HasCode(err, registry.CodeUnavailable) {
			err = missing(ctx, installer, name)
		}
		if err != nil {
			return pipeline.Toolchain{}, err
		}
		made[name], err = openDrivers(installer, run, w, name)
		return made[name], err
	}
}

// whenMissing makes the installer find a toolchain that is not installed, or says why not.
type whenMissing = func(ctx context.Context, installer *install.Installer, name string) error

func (a *app) installMissing(ctx context.Context, installer *install.Installer, name string) error {
	_, err := a.install(ctx, installer, name)
	return err
}

// replacements are what takes the place of installs, by toolchain: what the command line
// names, and else what the spec does.
type replacements struct {
	pythons map[string]string // interpreters, by path or name
	images  map[string]string // container images, by reference or digest
	spec    *spec.Spec        // nil where there is none
}

// or is r, and for toolchains of which it says nothing what the spec asks for.
func (r replacements) or(s *spec.Spec) replacements {
	r.spec = s
	return r
}

// add adds the flags.
func (r *replacements) add(c *cobra.Command) {
	c.Flags().StringToStringVar(&r.pythons, "python", nil, "TOOLCHAIN=PATH: an existing Python in place of the install of a toolchain, as python in a spec")
	c.Flags().StringToStringVar(&r.images, "image", nil, "TOOLCHAIN=REF: a container image in place of the install of a toolchain, as image in a spec")
}

// check refuses names of toolchains that there are none of.
func (r replacements) check() error {
	for _, name := range slices.Concat(sortedNames(r.pythons), sortedNames(r.images)) {
		if !slices.Contains(drivers.Names(), name) {
			return registry.Errorf(registry.CodeInvalid, "--python or --image: no toolchain %q: there are %s", name, strings.Join(drivers.Names(), ", "))
		}
	}
	return nil
}

// of gives the Python or the image that takes the place of a toolchain's install; neither
// where nothing does.
func (r replacements) of(name string) (python install.Python, image string, err error) {
	if r.pythons[name] != "" || r.images[name] != "" || r.spec == nil {
		return install.Python{Path: r.pythons[name]}, r.images[name], nil
	}
	pythons, err := r.spec.Pythons()
	return install.Python{Path: pythons[name], Within: &r.spec.Files}, r.spec.Images()[name], err
}

// adopt puts what takes the place of a toolchain's install there, if anything. run is
// what runs it; nil for a sandbox of this machine.
func (r replacements) adopt(ctx context.Context, installer *install.Installer, name string) (run driverproc.Runner, err error) {
	python, reference, err := r.of(name)
	switch {
	case err != nil:
		return nil, err
	case python.Path != "":
		_, err := installer.Adopt(ctx, name, python)
		return nil, err
	case reference == "":
		return nil, nil
	}
	image, err := container.Find(ctx, reference)
	if err == nil {
		_, err = installer.AdoptImage(ctx, name, image, image.Digest)
	}
	return image.Run, err
}

// openDrivers are those of a toolchain. ONNX Runtime runs in a child of our own
// program; what its Python does is quantize. The others do all their work in Python.
func openDrivers(installer *install.Installer, run driverproc.Runner, w driverDeps, name string) (pipeline.Toolchain, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return pipeline.Toolchain{}, err
	}
	program := script.New(script.In(run, script.Installed(installer, name)), driverproc.Budget{})
	tools := pipeline.Toolchain{Profile: source.Profile, Engines: w.driver(program, source.Profile.Cost), Timing: program}
	if len(source.Imports) > 0 {
		tools.Importer, tools.Framework = w.driver(program, source.Profile.Cost), source.Package
	}
	if source.Quantizes {
		tools.Quantizer = w.driver(program, source.Profile.Cost)
	}
	if name == ort.Name {
		engines := ort.New(ort.Options{Installs: installer})
		tools.Engines, tools.Timing = w.driver(engines, source.Profile.Cost), engines
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
func (a *app) room(ctx context.Context) (*toolchain.ResourcePool, error) {
	machine, err := a.describe(ctx, nil)
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

// describe reads this machine; what is given is what our own toolchains bring.
func (a *app) describe(ctx context.Context, runtimes map[string]string) (registry.Node, error) {
	return node.Describe(ctx, node.Options{Runtimes: runtimes})
}
