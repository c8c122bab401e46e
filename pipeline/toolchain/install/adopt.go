package install

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
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

// Python is an existing interpreter.
type Python struct {
	Path string // or a name to look up on PATH
	// Within is the folder of the spec that named Path. Then the program is untrusted: it sees
	// only system software and files below Within, whatever it claims to need. With nil, or
	// with a name for Path, the program is trusted.
	Within *confined.Folder
}

// surveyTime is how long a Python may take to report its version and files.
const surveyTime = 2 * time.Minute

// Adopt makes an existing Python the install of a toolchain for as long as the Installer
// lives. It is asked what it is in the sandbox that drivers run in. Nothing is installed and nothing is
// checked against the lock that this program carries. In place of the lock's digest the
// record has one of what is installed: the version of the interpreter, and every
// distribution with the digest of its list of files. Errors: CodeUnavailable where the
// interpreter is not there, is too old or lacks the toolchain's package; CodeNotFound for
// an unknown toolchain; CodeInvalid for one that is not written in Python, and for a
// Python that reaches out of Within.
func (i *Installer) Adopt(ctx context.Context, name string, python Python) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	if source.Language != drivers.Python {
		return Record{}, registry.Errorf(registry.CodeInvalid, "toolchain %s does not run on Python", name)
	}
	path, err := exec.LookPath(python.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Record{}, registry.Lastingf(registry.CodeUnavailable, "%s: Python %s: %w", name, python.Path, err)
	}
	if !strings.ContainsRune(python.Path, filepath.Separator) {
		python.Within = nil // it is on the PATH of a person
	}
	reads, hidden := python.visible(beginnings(path))
	program := driverproc.Program{Name: name, Path: path, Args: []string{path, "-I", "-B", "-c", survey}, Reads: reads}
	out, err := driverproc.Query(ctx, program, surveyTime)
	if err != nil {
		err = registry.Lastingf(registry.CodeUnavailable, "%s: Python %s: %w", name, path, err)
		if hidden != "" {
			err = registry.WithHint(err, "it was not shown %s: %s", hidden, howToName)
		}
		return Record{}, err
	}
	var found surveyed
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return Record{}, registry.Lastingf(registry.CodeUnavailable,
			"%s: %s does not answer as Python does: %w", name, path, err)
	}
	if err := python.allowed(found.Prefix, found.Base, found.Site); err != nil {
		return Record{}, err
	}
	r, err := found.record(source, path)
	if err != nil {
		return Record{}, err
	}
	if err := python.allowed(append(r.Folders(), r.LibraryPath())...); err != nil {
		return Record{}, err
	}
	i.keep(r)
	return r, nil
}

// beginnings are the folders that a Python needs to start: that of its environment, and that of
// the Python from which the environment was made, according to links and pyvenv.cfg
// (https://docs.python.org/3/library/site.html).
func beginnings(path string) []string {
	var folders []string
	for range maxLinks {
		folders = append(folders, parent(path))
		for _, dir := range []string{filepath.Dir(path), parent(path)} {
			if home := homeOf(filepath.Join(dir, "pyvenv.cfg")); home != "" {
				folders = append(folders, parent(filepath.Join(home, "python")))
			}
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return folders
}

// maxLinks bounds the symbolic links to a program, as on Linux.
const maxLinks = 40

// parent is the folder above that of a program. If that is the root of the file system, it is the
// program's own folder, and "" if that is the root too.
func parent(program string) string {
	bin := filepath.Dir(program)
	for _, folder := range []string{filepath.Dir(bin), bin} {
		if folder != filepath.Dir(folder) {
			return folder
		}
	}
	return ""
}

// howToName is the hint for a Python that a spec cannot name.
const howToName = "a spec can name a Python on PATH, or one that is complete in the spec's folder (python -m venv --copies); any other is named with --python TOOLCHAIN=PATH"

// visible returns the folders that can be shown to the Python, each once, and one that cannot,
// or "".
func (p Python) visible(folders []string) (visible []string, hidden string) {
	for _, folder := range folders {
		switch {
		case folder == "" || slices.Contains(visible, folder):
		case p.allowed(folder) != nil:
			hidden = folder
		default:
			visible = append(visible, folder)
		}
	}
	return visible, hidden
}

// allowed returns CodeInvalid for files and folders that may not be shown to the Python.
func (p Python) allowed(paths ...string) error {
	if p.Within == nil {
		return nil
	}
	for _, path := range paths {
		if path == "" || slices.ContainsFunc(sandbox.SystemFolders(), func(folder string) bool { return relative(folder, path) != "" }) {
			continue
		}
		below := relative(p.Within.Path(), path)
		err := errors.New("it is outside the folder of the spec")
		if below != "" {
			err = p.Within.Show(below)
		}
		if err != nil {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"Python %s needs %s, which it cannot see: %w", p.Path, path, err), howToName)
		}
	}
	return nil
}

// relative is a path relative to a folder, after links. It is "" if the path is not below it.
func relative(folder, path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	relative, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(relative) {
		return ""
	}
	return filepath.ToSlash(relative)
}

// keep makes Find return an adopted Python.
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
		return Record{}, registry.Lastingf(registry.CodeUnavailable,
			"%s needs Python %s or later: %s is %s", source.Name, source.Oldest, path, s.Python)
	}
	slices.SortFunc(s.Packages, func(a, b distribution) int {
		return strings.Compare(a.Name+"\x00"+a.Version+"\x00"+string(a.Record),
			b.Name+"\x00"+b.Version+"\x00"+string(b.Record))
	})
	r := Record{Name: source.Name, Python: s.Python, Program: path, Dir: s.Prefix,
		Adopted: true, base: s.Base, Versions: make(map[string]string)}
	for _, p := range s.Packages {
		r.Versions[strings.ToLower(separators.ReplaceAllString(p.Name, "-"))] = p.Version
	}
	if r.Version = r.Versions[source.Package]; r.Version == "" {
		return Record{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"%s: Python %s has no package %s", source.Name, path, source.Package),
			"install it there, or take the key python away for the install that mlpromote makes")
	}
	var err error
	if r.Lock, err = registry.CanonicalDigest(map[string]any{"python": s.Python, "packages": s.Packages}); err != nil ||
		source.Library == "" {
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
