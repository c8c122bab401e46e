// Package installed finds the toolchains that are installed on a machine. It reads their records and starts no
// process. Package install creates them.
package installed

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Record describes an install. Reading it starts no process.
type Record struct {
	Name          string            `json:"name"`
	Version       string            `json:"version"`           // of the toolchain: "1.30.0"
	Python        string            `json:"python,omitempty"`  // exact version: "3.12.1"
	Node          string            `json:"node,omitempty"`    // exact version of Node.js: "20.20.2"
	Program       string            `json:"program,omitempty"` // path of node, which is not part of the install
	Lock          registry.Digest   `json:"lock"`
	Versions      map[string]string `json:"versions"`                // version of every package, by its normalized name
	Library       string            `json:"library,omitempty"`       // relative to the install
	LibraryDigest registry.Digest   `json:"libraryDigest,omitempty"` // of its bytes
	LibrarySize   int64             `json:"librarySize,omitempty"`
	Created       time.Time         `json:"created"`
	Size          int64             `json:"size,omitempty"` // bytes of all files; 0 if they were not counted
	// Host is set for a Python of the host that was registered as an install. Nothing of it is in the folder of
	// installs, and no lock file says what it has.
	Host *Host `json:"host,omitempty"`

	Dir string `json:"-"` // path of the install; of an install of the host, of its Python
	// Adopted is true for a Python that the user already had. Lock then covers what is
	// installed.
	Adopted bool            `json:"-"`
	Image   registry.Digest `json:"-"` // image of an adopted Python; empty for a Python of this machine
	// Known is true for a toolchain that is not installed. Name, Version and Lock are those of
	// a later install. It cannot run.
	Known bool `json:"-"`
	// Base is the folder of the Python from which the environment of an adopted install was made.
	Base string `json:"-"`
}

// Host is what was found of a Python of the host when it was registered.
type Host struct {
	Prefix string `json:"prefix"`         // folder of the environment
	Base   string `json:"base,omitempty"` // folder of the Python from which the environment was made
	// Executable is the interpreter as it names itself. The program that was named may be a script that starts it.
	Executable string   `json:"executable,omitempty"`
	Sites      []string `json:"sites"` // folders with its packages
	// Fingerprint is the digest of what describes the packages in these folders, and of what runs when the interpreter starts.
	Fingerprint registry.Digest `json:"fingerprint"`

	record string // folder of the record
}

// Folder returns the folder that belongs to the install alone: its own, or that of its record if the rest is the
// host's.
func (r Record) Folder() string {
	if r.Host != nil {
		return r.Host.record
	}
	return r.Dir
}

// Interpreter returns the path of the install's Python, or of its Node.js.
func (r Record) Interpreter() string {
	if r.Program != "" {
		return r.Program
	}
	return filepath.Join(r.Dir, VenvDir, "bin", "python")
}

// Folders returns the folders that the install's interpreter reads: the install, and the Python
// from which it was made, which may be anywhere.
func (r Record) Folders() []string {
	if r.Image != "" || r.Known {
		return nil
	}
	var folders []string
	if r.Dir != filepath.Dir(r.Dir) { // of a Python whose prefix is all there is, the system's software is enough
		folders = append(folders, r.Dir)
	}
	add := func(bin string) {
		base := filepath.Dir(bin)
		within := func(folder string) bool { return base == folder || strings.HasPrefix(base, folder+"/") }
		if filepath.IsAbs(base) && base != "/" && !slices.ContainsFunc(folders, within) {
			folders = append(folders, base)
		}
	}
	if r.Base != "" {
		add(filepath.Join(r.Base, "bin"))
	}
	if interpreter, err := filepath.EvalSymlinks(r.Interpreter()); err == nil {
		add(filepath.Dir(interpreter))
	}
	if r.Host != nil {
		for _, site := range r.Host.Sites {
			add(filepath.Join(site, "bin"))
		}
	}
	if home := PythonHome(filepath.Join(r.Dir, VenvDir, "pyvenv.cfg")); home != "" && !r.Adopted {
		add(home)
	}
	return folders
}

// maxConfigBytes is far above the size of any pyvenv.cfg.
const maxConfigBytes = 64 << 10

// PythonHome returns the folder of the program from which an environment was made, according to its
// pyvenv.cfg. It is "" without that file.
func PythonHome(config string) string {
	f, err := os.OpenFile(config, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, home, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "home" {
			return strings.TrimSpace(home)
		}
	}
	return ""
}

// LibraryPath returns the path of the shared library, or "" if the toolchain has none.
func (r Record) LibraryPath() string {
	if r.Library == "" {
		return ""
	}
	return filepath.Join(r.Dir, filepath.FromSlash(r.Library))
}

// The layout of an install.
const (
	VenvDir    = "venv"        // folder of its Python
	RecordFile = "record.json" // its record, which is written last
)

// KeyLength is how many digits of a digest follow the name of a toolchain, and a hyphen, in the name of an install.
const KeyLength = 16

// Read reads the record of the install in dir, and checks that the files that it names
// still exist. Errors: fs.ErrNotExist if there is no complete install.
func Read(dir string) (Record, error) {
	text, err := os.ReadFile(filepath.Join(dir, RecordFile))
	if err != nil {
		return Record{}, err
	}
	r := Record{}
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, registry.Errorf(registry.CodeInternal, "%s: %w", filepath.Join(dir, RecordFile), err)
	}
	r.Dir = dir
	if r.Host != nil { // who uses it looks whether it is there: it must not be taken for one that is not installed
		r.Host.record = dir
		r.Dir, r.Base, r.Adopted = r.Host.Prefix, r.Host.Base, true
		return r, nil
	}
	if _, err := os.Stat(r.Interpreter()); err != nil {
		return Record{}, err
	}
	if path := r.LibraryPath(); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return Record{}, err
		}
		if info.Size() != r.LibrarySize {
			return Record{}, registry.Errorf(registry.CodeDigest,
				"%s is %d bytes, the install recorded %d", path, info.Size(), r.LibrarySize)
		}
	}
	return r, nil
}

// Records returns the installs of one toolchain in the folder of installs, newest first.
func Records(folder, name string) ([]Record, error) {
	return records(folder, func(toolchain string) bool { return toolchain == name })
}

// records returns the complete installs of the toolchains that are wanted, newest first. An error is about installs
// that are damaged; the others are returned nevertheless.
func records(folder string, wanted func(toolchain string) bool) ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*-*", RecordFile))
	if err != nil {
		return nil, err
	}
	var all []Record
	var damaged []error
	for _, path := range paths {
		install := filepath.Base(filepath.Dir(path))
		name := len(install) - len("-") - KeyLength
		if name <= 0 || install[name] != '-' || !wanted(install[:name]) {
			continue
		}
		r, err := Read(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return b.Created.Compare(a.Created) })
	return all, errors.Join(damaged...)
}
