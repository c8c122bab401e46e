package install

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

// survey makes a Python say what it is: its version, where it lies, and of every
// distribution that it finds the name, the version and the hash of RECORD, which has the
// hash of every file (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
const survey = `
import hashlib, importlib.metadata, json, platform, sys, sysconfig
found = []
for d in importlib.metadata.distributions():
    record = d.read_text("RECORD")
    found.append({"name": d.metadata["Name"], "version": d.version,
                  "record": "sha256:" + hashlib.sha256((record or "").encode()).hexdigest()})
print(json.dumps({"python": platform.python_version(), "executable": sys.executable, "prefix": sys.prefix, "base": sys.base_prefix,
                  "site": sysconfig.get_path("platlib"), "packages": found}))
`

// surveyed is what a Python says of itself.
type surveyed struct {
	Python   string         `json:"python"`
	Program  string         `json:"executable"`
	Prefix   string         `json:"prefix"`
	Base     string         `json:"base"`
	Site     string         `json:"site"`
	Packages []distribution `json:"packages"`
}

type distribution struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Record  registry.Digest `json:"record"` // of RECORD; of nothing where there is none
}

// Adopt makes an existing Python the install of a toolchain for as long as the Installer
// lives: python is a path, or a name to look up. Nothing is installed and nothing is
// checked against the lock that this program carries. In place of the lock's digest the
// record has one of what is installed: the version of the interpreter, and every
// distribution with the digest of its list of files. Errors: CodeUnavailable where the
// interpreter is not there, is too old or lacks the toolchain's package; CodeNotFound for
// an unknown toolchain; CodeInvalid for one that is not written in Python.
func (i *Installer) Adopt(ctx context.Context, name, python string) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	if source.Language != drivers.Python {
		return Record{}, registry.Errorf(registry.CodeInvalid, "toolchain %s does not run on Python", name)
	}
	path, err := exec.LookPath(python)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Record{}, registry.Errorf(registry.CodeUnavailable, "%s: Python %s: %w", name, python, err)
	}
	out, err := command(ctx, path, "-I", "-c", survey)
	if err != nil {
		return Record{}, registry.Errorf(registry.CodeUnavailable, "%s: Python %s: %w", name, path, err)
	}
	var found surveyed
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return Record{}, registry.Errorf(registry.CodeUnavailable, "%s: %s does not answer as Python does: %w", name, path, err)
	}
	r, err := found.record(source, path)
	if err != nil {
		return Record{}, err
	}
	i.keep(r)
	return r, nil
}

// keep makes Find give an adopted Python.
func (i *Installer) keep(r Record) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.adopted == nil {
		i.adopted = make(map[string]Record)
	}
	i.adopted[r.Name] = r
}

// record is what a Python is as an install.
func (s surveyed) record(source drivers.Source, path string) (Record, error) {
	if !atLeast(s.Python, source.Oldest) {
		return Record{}, registry.Errorf(registry.CodeUnavailable, "%s needs Python %s or later: %s is %s", source.Name, source.Oldest, path, s.Python)
	}
	slices.SortFunc(s.Packages, func(a, b distribution) int {
		return strings.Compare(a.Name+"\x00"+a.Version+"\x00"+string(a.Record), b.Name+"\x00"+b.Version+"\x00"+string(b.Record))
	})
	r := Record{Name: source.Name, Python: s.Python, Program: path, Dir: s.Prefix, Adopted: true, base: s.Base, Versions: make(map[string]string)}
	for _, p := range s.Packages {
		r.Versions[strings.ToLower(separators.ReplaceAllString(p.Name, "-"))] = p.Version
	}
	if r.Version = r.Versions[source.Package]; r.Version == "" {
		return Record{}, registry.WithHint(registry.Errorf(registry.CodeUnavailable, "%s: Python %s has no package %s", source.Name, path, source.Package),
			"install it there, or take the key python away for the install that mlpromote makes")
	}
	var err error
	if r.Lock, err = registry.CanonicalDigest(map[string]any{"python": s.Python, "packages": s.Packages}); err != nil || source.Library == "" {
		return r, err
	}
	library, err := one(filepath.Join(s.Site, filepath.FromSlash(source.Library)))
	if err != nil {
		return Record{}, err
	}
	if r.LibraryDigest, r.LibrarySize, err = toolchain.HashFile(library); err != nil {
		return Record{}, err
	}
	r.Library, err = filepath.Rel(r.Dir, library)
	return r, err
}
