package toolchains

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain/container"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/scoring"
	"mlpromote.dev/mlpromote/registry"
)

// Replacements are what takes the place of installs, by toolchain: what the command line
// names, and else what the spec does.
type Replacements struct {
	pythons map[string]string // interpreters, by path or name
	images  map[string]string // container images, by reference or digest
	spec    *spec.Spec        // nil where there is none

	allowProgram string        // see scoring.Python
	programTime  time.Duration // of the program of a metric
}

// program is the name by which --python names the Python for the program of a metric.
const program = "program"

// Or is r, and for toolchains of which it says nothing what the spec asks for.
func (r Replacements) Or(s *spec.Spec) Replacements {
	r.spec = s
	return r
}

// Add adds the flags.
func (r *Replacements) Add(c *cobra.Command) {
	c.Flags().StringToStringVar(&r.pythons, "python", nil,
		"TOOLCHAIN=PATH: an existing Python in place of the install of a toolchain, as python in a spec")
	c.Flags().StringToStringVar(&r.images, "image", nil, "TOOLCHAIN=REF: a container image in place of the install of a toolchain, as image in a spec")
}

// AddProgram adds the flags about the program of the metric `program`.
func (r *Replacements) AddProgram(c *cobra.Command) {
	c.Flags().StringVar(&r.allowProgram, "allow-program", "",
		"DIGEST|any: run the program of the metric even if this machine has no sandbox that keeps it from files and network")
	c.Flags().DurationVar(&r.programTime, "program-time", scoring.DefaultTime,
		"how long the program of the metric may take for the outputs of one engine")
}

// python runs programs that compute metrics. Named is the Python to use, if no flag names one.
func (r Replacements) python(named string) scoring.Python {
	return scoring.Python{Named: cmp.Or(r.pythons[program], named), Time: r.programTime, Allowed: r.allowProgram}
}

// Check refuses names of toolchains that there are none of, and programs that are not named by a digest.
func (r Replacements) Check() error {
	if r.programTime < 0 {
		return registry.Errorf(registry.CodeInvalid, "--program-time %s: want a time such as 5m", r.programTime)
	}
	if r.allowProgram != "" && r.allowProgram != scoring.Any && registry.Digest(r.allowProgram).Validate() != nil {
		return registry.Errorf(registry.CodeInvalid,
			"--allow-program %.80q: want the digest of the program, sha256:..., or %s", r.allowProgram, scoring.Any)
	}
	if r.images[program] != "" {
		return registry.Errorf(registry.CodeInvalid, "--image: the program of a metric runs on a Python of this machine: want --python program=PATH")
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(r.pythons)), slices.Sorted(maps.Keys(r.images))) {
		if name != program && !slices.Contains(drivers.Names(), name) {
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
