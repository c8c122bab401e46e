// Package drivers holds the driver programs that ship with us: for each its code, the
// lock file of the environment that it runs in, and what its engines are like.
//
// A lock names every package of the closure with the hashes of its files and no
// address. It is made from requirements.in, next to it, by `uv pip compile
// --universal --generate-hashes`. Modules in common are shared by all programs.
package drivers

import (
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
)

//go:embed */*.py */requirements.lock */*.mjs */package.json */package-lock.json
var files embed.FS

// Language is what a program is written in, and so what installs it.
type Language string

// The languages of drivers.
const (
	Python     Language = "python"     // driver.py, requirements.lock, pip
	JavaScript Language = "javascript" // driver.mjs, package-lock.json, npm
)

// Source is a driver program.
type Source struct {
	Name     string // "onnxruntime"
	Language Language
	Package  string // of the lock whose version is the toolchain's
	Library  string // glob, below site-packages, of the shared library that is shared with Go; may be empty
	Oldest   string // interpreter that the lock is for: "3.11" of Python, "20" of Node.js
	// Quantizes is true where the program has the verb quantize.
	Quantizes bool
	// Imports are the formats that the verb import turns into ONNX, as package spec names
	// them. Of all but ONNX itself, the verb run gives the predictions of the framework
	// that the format belongs to.
	Imports []string
	Needs   []Need
	// Installed is about how many MiB an install takes, as measured on linux/amd64.
	Installed int64
	// Profile of the engines that the program makes; without a name if it makes none.
	Profile  toolchain.Profile
	Code     map[string][]byte // the program and the modules that it imports
	Lock     []byte            // requirements.lock or package-lock.json
	Manifest []byte            // package.json, which npm wants beside its lock
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

// Importer gives the name of the program that imports a format. Errors: CodeNotFound.
func Importer(format string) (string, error) {
	for _, s := range known() {
		if slices.Contains(s.Imports, format) {
			return s.Name, nil
		}
	}
	return "", registry.Errorf(registry.CodeNotFound, "no toolchain imports format %q", format)
}

// Find gives the program of a name. Errors: CodeNotFound, naming those there are.
func Find(name string) (Source, error) {
	for _, s := range known() {
		if s.Name == name {
			err := s.read()
			return s, err
		}
	}
	return Source{}, registry.Errorf(registry.CodeNotFound,
		"no toolchain %q: there are %s", name, strings.Join(Names(), ", "))
}

// Program is the module that is started.
func (s Source) Program() string { return "driver" + s.Language.suffix() }

func (l Language) suffix() string {
	if l == JavaScript {
		return ".mjs"
	}
	return ".py"
}

// lockName is the file of the closure of packages.
func (l Language) lockName() string {
	if l == JavaScript {
		return "package-lock.json"
	}
	return "requirements.lock"
}

// read takes the program's files from the binary.
func (s *Source) read() error {
	s.Code = make(map[string][]byte)
	for _, folder := range []string{"common", s.Name} {
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
	if s.Lock, err = fs.ReadFile(files, path.Join(s.Name, s.Language.lockName())); err == nil && s.Language == JavaScript {
		s.Manifest, err = fs.ReadFile(files, path.Join(s.Name, "package.json"))
	}
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "driver %s: %w", s.Name, err)
	}
	return nil
}
