package drivers

import (
	"cmp"
	"embed"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

//go:embed */*.py */requirements.lock */*.mjs */package.json */package-lock.json
var files embed.FS

// Language is the language of a program. It decides which tool installs it.
type Language string

// The languages of drivers.
const (
	Python     Language = "python"     // driver.py, requirements.lock, pip
	JavaScript Language = "javascript" // driver.mjs, package-lock.json, npm
)

// Source is a driver program.
type Source struct {
	Name string // "onnxruntime"
	// Shares is the toolchain whose install, lock and modules the program uses, beside its own modules;
	// empty for an install of its own.
	Shares   string
	Language Language
	Package  string // package in the lock whose version is that of the toolchain
	Library  string // glob below site-packages of the shared library that the Go driver loads too; may be empty
	Oldest   string // minimum version of the interpreter: "3.11" of Python, "20" of Node.js
	// Quantizes is true if the program has the verb quantize.
	Quantizes bool
	// Imports are the formats that the verb import converts to ONNX, as package spec names
	// them. For all formats except ONNX, the verb run returns the predictions of the format's
	// own framework.
	Imports []string
	Needs   []Need
	// Drives are the versions of packages that the program knows how to drive, where they are more than the
	// version of Package in the lock. Installs of a host are held against it.
	Drives []Versions
	// Accelerators is true if it compiles for GPUs or other devices, too.
	Accelerators bool
	// AsIs are the formats of sources whose files are its engines, byte for byte, as package spec names them.
	AsIs []string
	// Triton is true if Triton has a backend of the same name for its engines.
	Triton bool
	// Lacks are operators of ai.onnx.ml that its compiler or runtime was seen to lack, without their domain.
	Lacks []string
	// Options are the load options of its runtime, by their own names.
	Options map[string]toolchains.Setting
	// Example is a target that it compiles for; the zero Target is any processor with Linux.
	Example artifact.Target
	// Routine is true if `make test` installs the toolchain. The tests of others run in `make toolchains-all`, and where they are
	// installed.
	Routine bool
	// Installed is the approximate size of an install in MiB, measured on linux/amd64.
	Installed int64
	// Large is why an install is so large, and why no smaller one is offered; empty for others.
	Large string
	// Profile describes the engines that the program makes. It has no name if it makes none.
	Profile  toolchain.Profile
	Code     map[string][]byte // the program and the modules that it imports
	Lock     []byte            // requirements.lock or package-lock.json
	Manifest []byte            // package.json, which npm requires beside its lock
}

// Versions are the versions of a package from the oldest through the newest, whose first components say it: 2.15 has all
// of 2.15.1.
type Versions struct {
	Package, Oldest, Newest string
	// Optional is true for a package without which the program does some of its jobs.
	Optional bool
}

// Need is a requirement of a program on a machine, beside its interpreter and its packages.
type Need struct {
	Library string   // file of a shared library of the system: "libGL.so.1"
	Program string   // program on PATH: "cc"
	Package string   // Debian package of the library or program: "libgl1"
	GPUs    []string // GPU vendors, one of which is enough: "nvidia"
	For     string   // purpose: "running engines for GPUs"; empty for everything
}

// Install returns the name of the toolchain whose install the program uses.
func (s Source) Install() string { return cmp.Or(s.Shares, s.Name) }

// Known returns the versions of packages that the program knows how to drive: those that it names, or else the one of its
// package in the lock.
func (s Source) Known() []Versions {
	if len(s.Drives) > 0 {
		return s.Drives
	}
	parts := strings.SplitN(s.Version(), ".", 3)
	version := strings.Join(parts[:min(2, len(parts))], ".")
	return []Versions{{Package: s.Package, Oldest: version, Newest: version}}
}

// Has reports whether a version is one of them.
func (v Versions) Has(version string) bool {
	within := version == v.Newest || strings.HasPrefix(version, v.Newest+".")
	return artifact.CompareVersions(version, v.Oldest) >= 0 && (within || artifact.CompareVersions(version, v.Newest) <= 0)
}

// String says which versions they are.
func (v Versions) String() string {
	if v.Oldest == v.Newest {
		return v.Package + " " + v.Oldest
	}
	return v.Package + " " + v.Oldest + " to " + v.Newest
}

// Version returns the version of the toolchain: that of its package in the lock.
func (s Source) Version() string {
	if s.Language == JavaScript {
		var manifest struct{ Dependencies map[string]string }
		if json.Unmarshal(s.Manifest, &manifest) != nil {
			return ""
		}
		return manifest.Dependencies[s.Package]
	}
	for line := range strings.Lines(string(s.Lock)) {
		if rest, ok := strings.CutPrefix(line, s.Package+"=="); ok {
			version, _, _ := strings.Cut(rest, " ")
			return strings.TrimSpace(version)
		}
	}
	return ""
}

// LockDigest returns the digest of the lock file.
func (s Source) LockDigest() registry.Digest { return digest.FromBytes(s.Lock) }

// Modules returns names and contents of all modules, in the order of names.
func (s Source) Modules() [][]byte {
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(s.Code)) {
		all = append(all, []byte(name), s.Code[name])
	}
	return all
}

// Program returns the name of the module that is started.
func (s Source) Program() string { return "driver" + s.Language.suffix() }

func (l Language) suffix() string {
	if l == JavaScript {
		return ".mjs"
	}
	return ".py"
}

// lockName returns the name of the lock file.
func (l Language) lockName() string {
	if l == JavaScript {
		return "package-lock.json"
	}
	return "requirements.lock"
}

// read reads the program's files, which are embedded in the binary.
func (s *Source) read() error {
	s.Code = make(map[string][]byte)
	for _, folder := range slices.Compact([]string{"common", s.Install(), s.Name}) { // the driver of the last one counts
		paths, err := fs.Glob(files, folder+"/*"+s.Language.suffix())
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
	if s.Lock, err = fs.ReadFile(files, path.Join(s.Install(), s.Language.lockName())); err == nil && s.Language == JavaScript {
		s.Manifest, err = fs.ReadFile(files, path.Join(s.Name, "package.json"))
	}
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "driver %s: %w", s.Name, err)
	}
	return nil
}

// Common returns the modules that all programs in Python share, by file name.
func Common() map[string][]byte {
	all := make(map[string][]byte)
	entries, _ := files.ReadDir("common") // it is embedded
	for _, e := range entries {
		all[e.Name()], _ = files.ReadFile("common/" + e.Name())
	}
	return all
}
