// Package elfdeps finds the system software that a Linux program loads when it starts: the
// shared libraries of an ELF file and their own, the loader, and the interpreter of a script. It
// only reads files.
//
// It searches libraries as ld.so(8) does without LD_LIBRARY_PATH: in the run paths of the file,
// in /etc/ld.so.cache, and in the usual folders. If the loader would choose among several by the
// features of the processor, it returns all of them.
package elfdeps

import (
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Finder finds libraries and interpreters. The zero Finder finds nothing; New makes one.
type Finder struct {
	visible func(path string) bool
	cache   map[string][]string
	seen    map[string]bool            // files that were examined
	found   map[string]map[string]bool // by name, the paths
}

// New returns a Finder that finds only files for which visible is true, as a loader in a sandbox
// does.
func New(visible func(path string) bool) (*Finder, error) {
	cache, err := readCache("/etc/ld.so.cache")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Finder{visible: visible, cache: cache,
		seen: make(map[string]bool), found: make(map[string]map[string]bool)}, nil
}

// Add finds what the file at an absolute path loads. Files that are neither ELF nor a script
// load nothing. Errors: those of the operating system, and of a damaged ELF file.
func (f *Finder) Add(file string) error { return f.add(file, nil, 0) }

// Found returns, for each name that a file asks for, the paths found for it, in order. A name
// without a path was not found.
func (f *Finder) Found() map[string][]string {
	all := make(map[string][]string, len(f.found))
	for name, paths := range f.found {
		all[name] = slices.Sorted(maps.Keys(paths))
	}
	return all
}

// maxScripts bounds how many scripts may be interpreters of one another, as in Linux.
const maxScripts = 5

func (f *Finder) add(file string, inherited []string, scripts int) error {
	if f.seen[file] {
		return nil
	}
	f.seen[file] = true
	in, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	var head [256]byte
	n, err := io.ReadFull(in, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	switch text := string(head[:n]); {
	case strings.HasPrefix(text, elf.ELFMAG):
		return f.addELF(file, in, inherited)
	case strings.HasPrefix(text, "#!") && scripts < maxScripts:
		return f.addInterpreter(text[2:], scripts)
	}
	return nil
}

// addInterpreter adds the interpreter of a script, and with env(1) also the program that it looks
// up.
func (f *Finder) addInterpreter(text string, scripts int) error {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	paths := []string{words[0]}
	if filepath.Base(words[0]) == "env" {
		i := slices.IndexFunc(words[1:],
			func(w string) bool { return !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") })
		if i >= 0 {
			paths = append(paths, lookUp(words[1+i]))
		}
	}
	for _, path := range paths {
		if err := f.take(path, path, nil, scripts+1); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds a program on the PATH of drivers.
func lookUp(name string) string {
	for _, folder := range []string{"/usr/bin", "/bin"} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

// take records a file for a name, if it exists, and adds what the file loads.
func (f *Finder) take(name, path string, inherited []string, scripts int) error {
	if f.found[name] == nil {
		f.found[name] = make(map[string]bool)
	}
	if !filepath.IsAbs(path) || !f.visible(path) {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil //nolint:nilerr // the loader does not find it either
	}
	f.found[name][path] = true
	return f.add(path, inherited, scripts)
}

// addELF adds the loader and the libraries of an ELF file.
func (f *Finder) addELF(file string, in io.ReaderAt, inherited []string) error {
	object, err := elf.NewFile(in)
	if err != nil {
		return &fs.PathError{Op: "read ELF file", Path: file, Err: err}
	}
	if loader := interpreter(object); loader != "" {
		if err := f.take(filepath.Base(loader), loader, nil, 0); err != nil {
			return err
		}
	}
	needed, err := object.ImportedLibraries()
	if err != nil {
		return &fs.PathError{Op: "read ELF file", Path: file, Err: err}
	}
	own := runPaths(object, file, elf.DT_RUNPATH)
	if len(own) == 0 {
		inherited = append(runPaths(object, file, elf.DT_RPATH), inherited...)
		own = inherited
	}
	for _, name := range needed {
		for _, path := range f.candidates(name, object, own) {
			if err := f.take(name, path, inherited, 0); err != nil {
				return err
			}
		}
		if f.found[name] == nil {
			f.found[name] = make(map[string]bool)
		}
	}
	return nil
}

// interpreter is the loader that an ELF program names.
func interpreter(object *elf.File) string {
	for _, p := range object.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			if text, err := io.ReadAll(p.Open()); err == nil {
				return strings.TrimRight(string(text), "\x00")
			}
		}
	}
	return ""
}

// runPaths are the folders for libraries that a file names. It ignores damage in the file, which
// ImportedLibraries reports.
func runPaths(object *elf.File, file string, tag elf.DynTag) []string {
	texts, err := object.DynString(tag)
	if err != nil {
		return nil
	}
	origin := filepath.Dir(file)
	if target, err := filepath.EvalSymlinks(file); err == nil {
		origin = filepath.Dir(target)
	}
	var folders []string
	for _, text := range texts {
		for folder := range strings.SplitSeq(text, ":") {
			folder = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(folder)
			if filepath.IsAbs(folder) && !strings.Contains(folder, "$") {
				folders = append(folders, filepath.Clean(folder))
			}
		}
	}
	return folders
}

// candidates are the files that the loader can take for a library: the first in the run
// paths, else those of its cache, else the first in the usual folders.
func (f *Finder) candidates(name string, of *elf.File, runPaths []string) []string {
	if strings.ContainsRune(name, '/') {
		return []string{name}
	}
	fits := func(path string) bool { return f.visible(path) && sameMachine(path, of) }
	if path := firstIn(runPaths, name, fits); path != "" {
		return []string{path}
	}
	if cached := slices.DeleteFunc(slices.Clone(f.cache[name]),
		func(path string) bool { return !fits(path) }); len(cached) > 0 {
		return cached
	}
	if path := firstIn(usualFolders(of.Machine), name, fits); path != "" {
		return []string{path}
	}
	return nil
}

func firstIn(folders []string, name string, fits func(string) bool) string {
	for _, folder := range folders {
		if path := filepath.Join(folder, name); fits(path) {
			return path
		}
	}
	return ""
}

// sameMachine reports whether a file is an ELF file for the same machine as another.
func sameMachine(path string, of *elf.File) bool {
	other, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = other.Close() }() // it was only read
	return other.Class == of.Class && other.Machine == of.Machine
}

// usualFolders are those that glibc and musl search without a cache, also on Debian.
func usualFolders(machine elf.Machine) []string {
	folders := []string{"/lib64", "/usr/lib64", "/lib", "/usr/local/lib", "/usr/lib"}
	triplet := map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu"}[machine]
	if triplet == "" {
		return folders
	}
	return append([]string{"/lib/" + triplet, "/usr/lib/" + triplet}, folders...)
}
