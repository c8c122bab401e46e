package spec

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// maxTag is the length of a tag in the OCI distribution specification; the rest of
// an engine's tag is room for its revision: "-r999".
const maxTag = 128 - len("-r999")

// runnerLabel is what the label of a CI runner may be. Systems put it into commands and expressions.
var runnerLabel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// featureName is what a CPU feature is called, in lower case.
var featureName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// imageName is a reference or digest of an image, which podman and docker read further.
var imageName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/@-]{0,511}$`)

func (c checker) checkTargets() {
	if len(c.Targets) == 0 {
		c.problem(at("targets"), "targets is empty: want at least one, for example [linux/amd64/v1]")
	}
	seen := make(map[string]bool)
	for i, t := range c.Targets {
		if seen[t.Name] {
			c.problem(at("targets", i, "name"), "target %q is here twice", t.Name)
		}
		seen[t.Name] = true
		if t.Runner != "" && !runnerLabel.MatchString(t.Runner) {
			c.problem(at("targets", i, "runner"), "runner %q: want the label of a CI runner: letters, digits and . _ -, at most 64", t.Runner)
		}
		if c.checkMachine(i, t) {
			c.report(t.Registry().Validate(), "targets", i, "name")
		}
		c.checkTargetVariants(i, t)
	}
}

// checkMachine checks what the target asks of machine and toolchain, and reports
// whether all of it can be.
func (c checker) checkMachine(i int, t Target) bool {
	if t.Accelerator != nil && slices.Contains(Toolchains(), t.Toolchain.Name) && !slices.Contains(forAccelerators(), t.Toolchain.Name) {
		c.problem(at("targets", i, "accelerator"), "target %s: %s builds engines for CPUs: for an accelerator want toolchain %s",
			t.Name, t.Toolchain.Name, strings.Join(forAccelerators(), " or "))
		return false
	}
	ok := c.oneOf(at("targets", i, "os"), "os", t.OS, []string{"linux", "darwin", "windows"}, nil)
	if t.CPU.Arch == "" {
		c.problem(at("targets", i), "target %s: cpu.arch is missing: want amd64 or arm64", t.Name)
		return false
	}
	ok = c.oneOf(at("targets", i, "cpu", "arch"), "architecture", t.CPU.Arch, []string{"amd64", "arm64"}, nil) && ok
	if ok && t.CPU.Level != "" && t.CPU.Arch != "amd64" {
		c.problem(at("targets", i, "cpu", "level"),
			"target %s: level %q is of amd64 processors only: %s has none", t.Name, t.CPU.Level, t.CPU.Arch)
		ok = false
	}
	if ok && t.CPU.Level != "" {
		ok = c.oneOf(at("targets", i, "cpu", "level"), "level", t.CPU.Level, []string{"v1", "v2", "v3", "v4"}, nil)
	}
	for j, f := range t.CPU.Features {
		if !featureName.MatchString(f) {
			c.problem(at("targets", i, "cpu", "features", j), "feature %q: want a name in lower case, such as avx512_vnni", f)
		}
	}
	return c.checkToolchain(i, t) && c.checkAccelerator(i, t) && ok
}

// checkAccelerator checks what a target asks of an accelerator in words that machines have otherwise.
func (c checker) checkAccelerator(i int, t Target) bool {
	switch a := t.Accelerator; {
	case a == nil:
		return true
	case a.Driver != "" && (artifact.Constraint{Min: a.Driver}).Validate() != nil:
		c.problem(at("targets", i, "accelerator", "driver"), "driver %q: want the lowest version as numbers separated by dots, such as \"550\"", a.Driver)
		return false
	case strings.Contains(a.Product, " "):
		c.problem(at("targets", i, "accelerator", "product"), "product %q: want it as GPU feature discovery names it: %s",
			a.Product, strings.ReplaceAll(a.Product, " ", "-"))
		return false
	}
	return true
}

func (c checker) checkToolchain(i int, t Target) bool {
	available, place := append(Toolchains(), c.others...), at("targets", i, "toolchain", "name")
	ok := slices.Contains(available, t.Toolchain.Name)
	if !ok {
		c.problem(place, "unknown toolchain %q%s: want %s, or write a manifest for your own compiler and name its folder with --toolchains (docs/how-to/compilers.md)",
			t.Toolchain.Name, registry.Suggest(t.Toolchain.Name, available), strings.Join(available, ", "))
	}
	for _, other := range c.Targets[:i] {
		if other.Toolchain.Name == t.Toolchain.Name &&
			(other.Toolchain.Python != t.Toolchain.Python || other.Toolchain.Image != t.Toolchain.Image) {
			c.problem(at("targets", i, "toolchain"),
				"target %s asks for another Python or image of %s than target %s: want one for all", t.Name, t.Toolchain.Name, other.Name)
			ok = false
		}
	}
	switch {
	case t.Toolchain.Image != "" && t.Toolchain.Python != "":
		c.problem(at("targets", i, "toolchain", "image"),
			"target %s asks for a Python and an image: want one of them", t.Name)
		ok = false
	case t.Toolchain.Image != "" && !imageName.MatchString(t.Toolchain.Image):
		c.problem(at("targets", i, "toolchain", "image"),
			"image %q: want a reference, such as registry.example.com/openvino:2026.4, or a digest", t.Toolchain.Image)
		ok = false
	}
	if v := t.Toolchain.Version; v != "" && (artifact.Constraint{Exact: v}).Validate() != nil {
		c.problem(at("targets", i, "toolchain", "version"), "toolchain version %q: want numbers separated by dots", v)
	}
	c.exists(t.Toolchain.Tuning, false, "targets", i, "toolchain", "tuning")
	if err := c.Files.Check(t.Toolchain.Python.path().Written, false); err != nil &&
		t.Toolchain.Python.path().Written != "" {
		c.problem(at("targets", i, "toolchain", "python"),
			"%s; or give it on the command line: --python %s=PATH", err, t.Toolchain.Name)
		ok = false
	}
	for j, p := range t.Toolchain.RegistryProviders() {
		c.report(p.Validate(), "targets", i, "toolchain", "providers", j)
		if slices.ContainsFunc(t.Toolchain.Providers[:j], func(o Provider) bool { return o.Name == p.Name }) {
			c.problem(at("targets", i, "toolchain", "providers", j), "execution provider %q is here twice", p.Name)
		}
	}
	return ok
}

func (c checker) checkTargetVariants(i int, t Target) {
	if len(t.Variants) == 0 && len(c.Variants) > 0 {
		c.problem(at("targets", i, "variants"), "target %s: variants is empty: remove the key to build all", t.Name)
	}
	var names []string
	for _, v := range c.Variants {
		names = append(names, v.Name)
	}
	for j, name := range t.Variants {
		place := at("targets", i, "variants", j)
		switch {
		case !slices.Contains(names, name):
			c.oneOf(place, "variant", name, names, nil)
		case slices.Contains(t.Variants[:j], name):
			c.problem(place, "variant %q is here twice", name)
		case len(strings.Join([]string{c.Version, t.Name, name}, ".")) > maxTag:
			c.problem(place, "version, target and variant %s.%s.%s: want at most %d characters, since they make a tag",
				c.Version, t.Name, name, maxTag)
		}
	}
}

// checkLoad checks the load profile of every engine, once for each key that it comes from.
func (c checker) checkLoad() {
	noted := make(map[string]bool)
	note := func(err error, place ...any) {
		if err != nil && !noted[err.Error()] {
			noted[err.Error()] = true
			c.report(err, place...)
		}
	}
	for i, t := range c.Targets {
		if t.Load != nil {
			_, err := t.LoadProfile(Variant{})
			note(err, "targets", i, "load")
		}
		for _, name := range t.Variants {
			for j, v := range c.Variants {
				if v.Name == name && v.Load != nil {
					_, err := t.LoadProfile(v)
					note(err, "variants", j, "load")
				}
			}
		}
	}
	for i, asset := range c.Assets {
		if path.Base(asset.Written) == artifact.LoadProfileFile {
			c.problem(at("assets", i), "asset %q has the name of the file with the load profile: rename it", asset.Written)
		}
	}
}
