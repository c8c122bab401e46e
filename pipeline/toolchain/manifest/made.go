package manifest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/elfdeps"
	"mlpromote.dev/mlpromote/registry"
)

// Limits on the files of a tool. Every plan that uses the tool reads all of them.
const (
	maxInputs     = 10_000
	maxInputBytes = 8 << 30
)

// made are the files of a tool: those that can change its results even if its version stays the
// same.
type made struct {
	folder  confined.Folder   // of the tool, after links
	shown   []string          // folders that it sees beside system software
	entries map[string]string // by name, the digest of a file, or a note about something that is not a file
	stamps  map[string]fs.FileInfo
	links   map[string]string // by path, the file that it leads to; empty for nowhere
	whole   bool              // every file in the folder counts
	bytes   int64
}

// consists is what a manifest says about the files of a program.
type consists struct {
	folder string   // empty: that of the program
	inputs []string // nil: every file in the folder
}

// lookUp returns the absolute path of a program, by its path or by a name on PATH.
func lookUp(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// examine reads the files of the program at an absolute path: the inputs, or all files in its folder, and the system
// software that they load. No program may see the private folders. Errors: CodeInvalid for files that are too many, private or missing; those of the
// operating system.
func (c consists) examine(executable string, private []string) (*made, error) {
	target, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return nil, err
	}
	t := &made{entries: make(map[string]string), stamps: make(map[string]fs.FileInfo), links: map[string]string{executable: target}, whole: c.inputs == nil}
	root, name, err := c.root(target)
	if err != nil {
		return nil, err
	}
	if t.folder, err = confined.New(root, "the folder of the executable", private...); err != nil {
		return nil, err
	}
	if err := t.show(filepath.Dir(executable), private); err != nil {
		return nil, err
	}
	if err := t.show(t.folder.Path(), private); err != nil {
		return nil, err
	}
	names := []string{name}
	if c.inputs == nil {
		all, err := t.folder.Tree(".", maxInputs)
		if err != nil {
			return nil, registry.WithHint(err, "list the files of the tool in its manifest: inputs: [FILES]")
		}
		names = append(names, all...)
	}
	var elsewhere []string
	for _, pattern := range c.inputs {
		found, err := t.expand(pattern)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(pattern) {
			elsewhere = append(elsewhere, found...)
		} else {
			names = append(names, found...)
		}
	}
	return t, t.read(names, elsewhere)
}

// root returns the folder of the tool, and the name of its executable there.
func (c consists) root(executable string) (folder, name string, err error) {
	if c.folder == "" {
		return filepath.Dir(executable), filepath.Base(executable), nil
	}
	if folder, err = filepath.EvalSymlinks(c.folder); err != nil {
		return "", "", err
	}
	if name, err = filepath.Rel(folder, executable); err == nil && !filepath.IsLocal(name) {
		err = registry.Errorf(registry.CodeInvalid, "folder: the executable %s is not below %s", executable, c.folder)
	}
	return folder, filepath.ToSlash(name), err
}

// show makes a folder visible to the tool if it contains nothing private. System software is
// always visible.
func (t *made) show(folder string, private []string) error {
	if system(folder) || slices.Contains(t.shown, folder) {
		return nil
	}
	if folder == filepath.Dir(folder) {
		return registry.Errorf(registry.CodeInvalid,
			"the executable is in %s, so the tool would see everything: move it into a separate folder", folder)
	}
	f, err := confined.New(folder, "the folder of the executable", private...)
	if err == nil {
		_, err = f.Tree(".", maxShown)
	}
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "the tool would see %s: %w", folder, err)
	}
	t.shown = append(t.shown, folder)
	return nil
}

// maxShown bounds the files and folders beside an executable.
const maxShown = 200_000

// visible reports whether the tool can see a file.
func (t *made) visible(path string) bool {
	return system(path) || slices.ContainsFunc(t.shown,
		func(folder string) bool { return strings.HasPrefix(path, folder+"/") })
}

// expand returns the files that match a pattern of the manifest. A folder means all files in
// it. Patterns of system software are absolute, all others relative.
func (t *made) expand(pattern string) ([]string, error) {
	matches, files, err := t.glob(pattern)
	if err == nil && len(matches) == 0 {
		err = registry.Errorf(registry.CodeInvalid,
			"inputs: %s matches no file (patterns start from %s)", pattern, t.folder.Path())
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range matches {
		found, err := files(match)
		if err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "inputs: %s: %w", pattern, err)
		}
		names = append(names, found...)
	}
	return names, nil
}

// glob returns the matches of a pattern, and a function that returns the files of a match.
func (t *made) glob(pattern string) (matches []string, files func(string) ([]string, error), err error) {
	if filepath.IsAbs(pattern) {
		matches, err = filepath.Glob(pattern)
		return matches, systemFiles, err
	}
	root, err := t.folder.OpenRoot(".")
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	matches, err = fs.Glob(root.FS(), filepath.ToSlash(filepath.Clean(pattern)))
	return matches, t.filesOf, err
}

// filesOf returns the files of a name in the tool's folder.
func (t *made) filesOf(name string) ([]string, error) {
	if root, err := t.folder.OpenRoot(name); err == nil {
		root.Close()
		return t.folder.Tree(name, maxInputs)
	}
	return []string{name}, nil
}

// systemFiles returns the files of a path in the system software.
func systemFiles(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		if len(files) > maxInputs {
			return registry.Errorf(registry.CodeInvalid, "more than %d files", maxInputs)
		}
		return err
	})
	return files, err
}

// read hashes files of the tool's folder and of the system, and the files that they load.
func (t *made) read(names, elsewhere []string) error {
	finder, err := elfdeps.New(t.visible)
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := t.add(name)
		if err == nil && file != "" {
			err = finder.Add(file)
		}
		if err != nil {
			return err
		}
	}
	for _, file := range elsewhere {
		if err := t.addSystem(file, file); err != nil {
			return err
		}
		if err := finder.Add(file); err != nil {
			return err
		}
	}
	loaded := finder.Found()
	for _, name := range slices.Sorted(maps.Keys(loaded)) {
		if len(loaded[name]) == 0 {
			t.entries["loads "+name] = "nothing"
		}
		for i, file := range loaded[name] {
			if err := t.addSystem(fmt.Sprintf("loads %s %d", name, i), file); err != nil {
				return err
			}
		}
	}
	return nil
}

// add hashes a file of the tool's folder, by its name there, and returns its path. For a link
// it hashes the target's path, and the target itself if the tool can see it.
func (t *made) add(name string) (file string, err error) {
	name = path.Clean(name)
	if t.entries[name] != "" {
		return "", nil
	}
	at := filepath.Join(t.folder.Path(), filepath.FromSlash(name))
	if target, err := os.Readlink(at); err == nil {
		t.entries[name] = "link to " + target
		file, err := filepath.EvalSymlinks(at)
		t.links[at] = file
		if info, errStat := os.Stat(at); err != nil || errStat != nil || !info.Mode().IsRegular() || !t.visible(file) {
			return "", nil // it leads nowhere
		}
		return file, t.addSystem("what "+name+" leads to", file)
	}
	f, err := t.folder.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Name(), t.hash(name, f)
}

// addSystem hashes a file of the system by its path.
func (t *made) addSystem(name, file string) error {
	f, err := toolchain.OpenFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.hash(name, f)
}

// hash records an open file.
func (t *made) hash(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t.bytes += info.Size()
	if len(t.stamps) >= maxInputs || t.bytes > maxInputBytes {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid,
				"the tool in %s has more than %d files or %d GiB", t.folder.Path(), maxInputs, maxInputBytes>>30),
			"list its files in its manifest: inputs: [FILES]")
	}
	d, _, err := toolchain.HashOf(f)
	t.entries[name], t.stamps[f.Name()] = string(d), info
	return err
}

// digest covers all files of the tool.
func (t *made) digest() (registry.Digest, error) { return registry.CanonicalDigest(t.entries) }

// changed returns a file whose size or time has changed since it was read, a link that leads elsewhere, or a file that came since,
// or "".
func (t *made) changed() string {
	for link, was := range t.links {
		if now, _ := filepath.EvalSymlinks(link); now != was {
			return link
		}
	}
	if t.whole {
		all, err := t.folder.Tree(".", maxInputs)
		if err != nil {
			return t.folder.Path()
		}
		for _, name := range all {
			if t.entries[path.Clean(name)] == "" {
				return filepath.Join(t.folder.Path(), name)
			}
		}
	}
	for file, was := range t.stamps {
		now, err := os.Stat(file)
		if err != nil || !os.SameFile(was, now) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
			return file
		}
	}
	return ""
}
