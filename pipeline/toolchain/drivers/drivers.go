// Package drivers holds the driver programs that ship with us: for each its code, the
// lock file of the environment that it runs in, and what its engines are like.
//
// A lock names every package of the closure with the hashes of its files and no
// address. It is made from requirements.in, next to it, by `uv pip compile
// --universal --generate-hashes`. Modules in common are shared by all programs.
package drivers

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

//go:embed */*.py */requirements.lock
var files embed.FS

// Source is a driver program.
type Source struct {
	Name    string // "onnxruntime"
	Package string // of the lock whose version is the toolchain's
	Library string // glob, below site-packages, of the shared library that is shared with Go; may be empty
	Python  string // oldest Python that the lock is for: "3.11"
	// Quantizes is true where the program has the verb quantize.
	Quantizes bool
	Needs     []Need
	Profile   toolchain.Profile
	Code      map[string][]byte // the program, driver.py, and the modules that it imports
	Lock      []byte            // requirements.lock
}

// Need is what a program needs of a machine, beside its interpreter and its packages.
type Need struct {
	Library string   // file of a shared library of the system: "libGL.so.1"
	Package string   // of Debian that has the library: "libgl1"
	GPUs    []string // vendors, one of which will do: "nvidia"
	For     string   // what it is needed for: "running engines for GPUs"; empty for everything
}

// Version is that of the package which gives the toolchain its version, as the lock has it.
func (s Source) Version() string {
	for line := range strings.Lines(string(s.Lock)) {
		if rest, ok := strings.CutPrefix(line, s.Package+"=="); ok {
			version, _, _ := strings.Cut(rest, " ")
			return strings.TrimSpace(version)
		}
	}
	return ""
}

// LockDigest is the digest of the lock file.
func (s Source) LockDigest() registry.Digest { return digest.FromBytes(s.Lock) }

// Modules gives the code in the order of names, each name before its content.
func (s Source) Modules() [][]byte {
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(s.Code)) {
		all = append(all, []byte(name), s.Code[name])
	}
	return all
}

// Names are the programs that there are.
func Names() []string {
	var names []string
	for _, s := range known() {
		names = append(names, s.Name)
	}
	return names
}

// Find gives the program of a name. Errors: CodeNotFound, naming those there are.
func Find(name string) (Source, error) {
	for _, s := range known() {
		if s.Name == name {
			err := s.read()
			return s, err
		}
	}
	return Source{}, registry.Errorf(registry.CodeNotFound, "no toolchain %q: there are %s", name, strings.Join(Names(), ", "))
}

// read takes the program's files from the binary.
func (s *Source) read() error {
	s.Code = make(map[string][]byte)
	for _, folder := range []string{"common", s.Name} {
		paths, err := fs.Glob(files, folder+"/*.py")
		if err != nil {
			return registry.Errorf(registry.CodeInternal, "driver %s: %w", s.Name, err)
		}
		for _, p := range paths {
			if s.Code[path.Base(p)], err = fs.ReadFile(files, p); err != nil {
				return registry.Errorf(registry.CodeInternal, "driver %s: %w", s.Name, err)
			}
		}
	}
	var err error
	if s.Lock, err = fs.ReadFile(files, path.Join(s.Name, "requirements.lock")); err != nil {
		return registry.Errorf(registry.CodeInternal, "driver %s: %w", s.Name, err)
	}
	return nil
}
