package toolchains

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain/container"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry"
)

// Replacements are what takes the place of installs, by toolchain: what the command line
// names, and else what the spec does.
type Replacements struct {
	pythons map[string]string // interpreters, by path or name
	images  map[string]string // container images, by reference or digest
	spec    *spec.Spec        // nil where there is none
}

// Or is r, and for toolchains of which it says nothing what the spec asks for.
func (r Replacements) Or(s *spec.Spec) Replacements {
	r.spec = s
	return r
}

// Add adds the flags.
func (r *Replacements) Add(c *cobra.Command) {
	c.Flags().StringToStringVar(&r.pythons, "python", nil, "TOOLCHAIN=PATH: an existing Python in place of the install of a toolchain, as python in a spec")
	c.Flags().StringToStringVar(&r.images, "image", nil, "TOOLCHAIN=REF: a container image in place of the install of a toolchain, as image in a spec")
}

// Check refuses names of toolchains that there are none of.
func (r Replacements) Check() error {
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(r.pythons)), slices.Sorted(maps.Keys(r.images))) {
		if !slices.Contains(drivers.Names(), name) {
			return registry.Errorf(registry.CodeInvalid, "--python or --image: no toolchain %q: there are %s", name, strings.Join(drivers.Names(), ", "))
		}
	}
	return nil
}

// of gives the Python or the image that takes the place of a toolchain's install; neither
// where nothing does.
func (r Replacements) of(name string) (python install.Python, image string, err error) {
	if r.pythons[name] != "" || r.images[name] != "" || r.spec == nil {
		return install.Python{Path: r.pythons[name]}, r.images[name], nil
	}
	pythons, err := r.spec.Pythons()
	return install.Python{Path: pythons[name], Within: &r.spec.Files}, r.spec.Images()[name], err
}

// adopt puts what takes the place of a toolchain's install there, if anything. run is
// what runs it; nil for a sandbox of this machine.
func (r Replacements) adopt(ctx context.Context, installer *install.Installer, name string) (run driverproc.Runner, err error) {
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
