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
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
)

// surveyCode makes a Python report its version, its folders, and for every installed distribution
// the name, the version and the hash of RECORD, which has the hash of every file
// (https://packaging.python.org/en/latest/specifications/recording-installed-packages/). What an
// interrupted removal left of a package has no name, and is none. Its folders are those with packages, those that it looks in
// for .pth files although they have no package, and that of its own modules, which may have a sitecustomize too.
const surveyCode = `
import hashlib, importlib.metadata, json, os, platform, site, sys, sysconfig, warnings
warnings.simplefilter("ignore")
found, sites = [], {os.path.realpath(d) for d in [sysconfig.get_path("stdlib"), *site.getsitepackages()] if os.path.isdir(d)}
for d in importlib.metadata.distributions():
    if not d.metadata or "Name" not in d.metadata:
        continue
    record = d.read_text("RECORD")
    sites.add(os.path.realpath(d.locate_file("")))
    found.append({"name": d.metadata["Name"], "version": d.version,
                  "record": "sha256:" + hashlib.sha256((record or "").encode()).hexdigest()})
print(json.dumps({"python": platform.python_version(), "executable": sys.executable, "prefix": sys.prefix, "base": sys.base_prefix,
                  "site": sysconfig.get_path("platlib"), "sites": sorted(sites), "packages": found}))
`

// surveyed is what a Python reports about itself.
type surveyed struct {
	Python   string         `json:"python"`
	Program  string         `json:"executable"`
	Prefix   string         `json:"prefix"`
	Base     string         `json:"base"`
	Site     string         `json:"site"`
	Sites    []string       `json:"sites"`
	Packages []distribution `json:"packages"`
}

type distribution struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Record  registry.Digest `json:"record"` // of RECORD; of the empty string without that file
}

// Python is an existing interpreter.
type Python struct {
	Path string // or a name to look up in PATH
	// Within is the folder of the spec that named Path. The program is then untrusted: it sees
	// only system software and files below Within, whatever it says that it needs. If Within is
	// nil or Path is a bare name, the program is trusted.
	Within *confined.Folder
}

// surveyTime is how long a Python may take to report its version and files.
const surveyTime = 2 * time.Minute

// Adopt makes an existing Python the install of a toolchain, for this Installer. It
// queries the Python in the sandbox in which drivers run. It installs nothing,
// and checks nothing against the embedded lock file. The record's lock digest covers the
// interpreter, what it runs when it starts and, for every distribution, the digest of its list of files.
// Errors: CodeUnavailable if the interpreter does not exist, is too old or lacks the
// toolchain's package; CodeNotFound for an unknown toolchain; CodeInvalid for one that is not
// written in Python, and for a Python that needs files outside Within.
func (i *Installer) Adopt(ctx context.Context, name string, python Python) (Record, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return Record{}, err
	}
	found, path, err := survey(ctx, source, python)
	if err != nil {
		return Record{}, err
	}
	if !strings.ContainsRune(python.Path, filepath.Separator) {
		python.Within = nil // the user's PATH selects it
	}
	r, err := found.locked(source, path)
	if err != nil {
		return Record{}, err
	}
	if err := python.allowed(append(r.Folders(), r.LibraryPath())...); err != nil {
		return Record{}, err
	}
	i.keep(r)
	return r, nil
}

// Examine reads a Python that a user names for a program that is not ours: its version, its packages, and their digest as
// the lock. Errors: CodeUnavailable if it does not exist or does not answer.
func Examine(ctx context.Context, name, python string) (Record, error) {
	source := drivers.Source{Name: name, Language: drivers.Python, Oldest: "3.8"}
	found, path, err := survey(ctx, source, Python{Path: python})
	if err != nil {
		return Record{}, err
	}
	return found.locked(source, path)
}

// survey queries a Python in the sandbox in which drivers run, and checks that it may see its files. path is that of its
// program.
func survey(ctx context.Context, source drivers.Source, python Python) (found surveyed, path string, err error) {
	name := source.Name
	if source.Language != drivers.Python {
		return surveyed{}, "", registry.Errorf(registry.CodeInvalid, "toolchain %s does not run on Python", name)
	}
	path, err = exec.LookPath(python.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return surveyed{}, "", registry.Lastingf(registry.CodeUnavailable, "%s: Python %s: %w", name, python.Path, err)
	}
	if !strings.ContainsRune(python.Path, filepath.Separator) {
		python.Within = nil // the user's PATH selects it
	}
	reads, hidden := python.visible(beginnings(path))
	program := driverproc.Program{Name: name, Path: path, Args: []string{path, "-I", "-B", "-c", surveyCode}, Reads: reads}
	out, err := driverproc.Query(ctx, program, surveyTime)
	if err != nil {
		err = registry.Lastingf(registry.CodeUnavailable, "%s: Python %s: %w", name, path, err)
		if hidden != "" {
			err = registry.WithHint(err, "%s is not visible to it: %s", hidden, howToName)
		}
		return surveyed{}, "", err
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return surveyed{}, "", registry.Lastingf(registry.CodeUnavailable,
			"%s: %s did not answer like a Python interpreter: %w", name, path, err)
	}
	return found, path, python.allowed(append([]string{found.Prefix, found.Base, found.Site, found.Program}, found.Sites...)...)
}

// beginnings returns the folders that a Python needs to start: that of its environment, and
// that of the Python from which the environment was made, according to links and pyvenv.cfg
// (https://docs.python.org/3/library/site.html).
func beginnings(path string) []string {
	var folders []string
	for range maxLinks {
		folders = append(folders, parent(path))
		for _, dir := range []string{filepath.Dir(path), parent(path)} {
			if home := installed.PythonHome(filepath.Join(dir, "pyvenv.cfg")); home != "" {
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

// visible returns the folders that the Python may see, each once, and one that cannot be made
// visible, or "".
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

// allowed returns CodeInvalid if the Python may not see one of its files or folders.
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
				"Python %s needs %s, which builds with it must not read: %w", p.Path, path, err), howToName)
		}
	}
	return nil
}

// relative returns a path relative to a folder, after links are followed. It is "" if the path
// is not below the folder.
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

// record returns the record of a Python as an install, without a lock. It reads no files: those of an image are not here.
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
		Adopted: true, Base: s.Base, Versions: make(map[string]string)}
	for _, p := range s.Packages {
		r.Versions[strings.ToLower(separators.ReplaceAllString(p.Name, "-"))] = p.Version
	}
	if source.Package == "" {
		return r, nil
	}
	if r.Version = plainVersion(r.Versions[source.Package]); r.Version == "" {
		return Record{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"%s: Python %s has no package %s", source.Name, path, source.Package),
			"install it there, or remove the key python to use mlpromote's own install")
	}
	return r, nil
}

// locked is the record of a Python of this machine, with the digest of what is there as its lock.
func (s surveyed) locked(source drivers.Source, path string) (Record, error) {
	r, err := s.record(source, path)
	if err != nil {
		return Record{}, err
	}
	interpreter, err := interpreterDigest(path, s.Program, s.Sites)
	if err != nil {
		return Record{}, registry.Lastingf(registry.CodeUnavailable, "%s: Python %s: %w", source.Name, path, err)
	}
	lock := map[string]any{"python": s.Python, "packages": s.Packages, "interpreter": interpreter}
	if r.Lock, err = registry.CanonicalDigest(lock); err != nil || source.Library == "" {
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

// plainVersion is a version without what its builder added: 2.11.0 of 2.11.0+cu130.
func plainVersion(version string) string {
	plain, _, _ := strings.Cut(version, "+")
	return plain
}
