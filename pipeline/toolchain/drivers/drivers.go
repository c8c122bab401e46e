// Package drivers holds the driver programs that ship with us: for each its code
// and the lock file of the environment that it runs in.
//
// A lock names every package of the closure with the hashes of its files and no
// address. It is made from requirements.in, next to it, by `uv pip compile
// --universal --generate-hashes`.
package drivers

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

//go:embed */driver.py */requirements.lock
var files embed.FS

// Source is a driver program.
type Source struct {
	Name    string // "onnxruntime"
	Package string // of the lock whose version is the toolchain's
	Library string // glob, below site-packages, of the shared library that is shared with Go; may be empty
	Python  string // oldest Python that the lock is for: "3.11"
	Code    []byte // driver.py
	Lock    []byte // requirements.lock
}

// LockDigest is the digest of the lock file.
func (s Source) LockDigest() registry.Digest { return digest.FromBytes(s.Lock) }

// known says of each program what its files do not.
var known = []Source{
	{Name: "onnxruntime", Package: "onnxruntime", Library: "onnxruntime/capi/libonnxruntime.so.*", Python: "3.11"},
}

// Names are the programs that there are.
func Names() []string {
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	return names
}

// Find gives the program of a name. Errors: CodeNotFound, naming those there are.
func Find(name string) (Source, error) {
	for _, s := range known {
		if s.Name != name {
			continue
		}
		var err error
		if s.Code, err = fs.ReadFile(files, path.Join(name, "driver.py")); err != nil {
			return Source{}, registry.Errorf(registry.CodeInternal, "driver %s: %w", name, err)
		}
		if s.Lock, err = fs.ReadFile(files, path.Join(name, "requirements.lock")); err != nil {
			return Source{}, registry.Errorf(registry.CodeInternal, "driver %s: %w", name, err)
		}
		return s, nil
	}
	return Source{}, registry.Errorf(registry.CodeNotFound, "no toolchain %q: there are %s", name, strings.Join(Names(), ", "))
}
