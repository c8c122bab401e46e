// Package confined opens files by names from an untrusted file: the model, cases and assets of
// a spec, or the external data of a model. Its author may not be the user who runs this
// program, so a name reaches only regular files below one folder.
//
// Checking and opening are one operation. Every component of a name is looked up in a folder
// that is already open, symbolic links are followed one by one, and the file that was checked is
// the one that is returned. A file that is replaced meanwhile gives an error.
package confined

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
)

// DataFolder is the usual name of a data directory, which holds keys and stored content. No
// name may lead into a folder with this name.
const DataFolder = ".mlpromote"

// Folder is a folder whose files can be opened by untrusted names. A name is a path relative
// to it with '/'. The zero Folder opens nothing.
type Folder struct {
	path    string // absolute, without symbolic links
	what    string // "the folder of the spec"
	private []string
	opened  *opened // nil for the zero Folder
}

// opened are the files that were opened, by absolute path. It is safe for concurrent use.
type opened struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (o *opened) add(path string) {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.paths[path] = true
	}
}

// New returns the folder dir. what is its description in messages, such as "the folder of the
// spec". private are folders that no name may lead into: the data directory and the keys. They
// need not exist. Errors: CodeInvalid if dir is not a folder or is inside a private one.
func New(dir, what string, private ...string) (Folder, error) {
	resolved, err := filepath.Abs(dir)
	if err == nil {
		resolved, err = filepath.EvalSymlinks(resolved)
	}
	if err != nil {
		return Folder{}, registry.Errorf(registry.CodeInvalid, "%s: %w", what, err)
	}
	f := Folder{path: resolved, what: what, private: slices.Clone(private), opened: &opened{paths: make(map[string]bool)}}
	for _, path := range private {
		if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Folder{}, registry.Errorf(registry.CodeInvalid,
				"%s: cannot tell it from the private folder %s: %w", what, path, cause(err))
		}
	}
	secrets := f.secrets()
	for above := resolved; ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return Folder{}, registry.Errorf(registry.CodeInvalid, "%s: %w", what, err)
		}
		if secrets.has(filepath.Base(above), info) {
			return Folder{}, registry.Errorf(registry.CodeInvalid,
				"%s, %s, is inside %s, which holds keys or stored models: move it out of there",
				what, dir, above)
		}
		if above == filepath.Dir(above) {
			return f, nil
		}
	}
}

// Path is the absolute path of the folder, without symbolic links.
func (f Folder) Path() string { return f.path }

// Opened lists the files that were opened so far, by this Folder or a copy of it: absolute paths without
// symbolic links, sorted.
func (f Folder) Opened() []string {
	if f.opened == nil {
		return nil
	}
	f.opened.mu.Lock()
	defer f.opened.mu.Unlock()
	return slices.Sorted(maps.Keys(f.opened.paths))
}

// Open opens the regular file that name leads to, for reading. The name of the result is its
// absolute path without symbolic links. Errors: CodeInvalid, in a sentence that begins with
// name; it is also fs.ErrNotExist if there is no such file.
func (f Folder) Open(name string) (*os.File, error) {
	w, err := f.walk(name)
	if err != nil {
		return nil, err
	}
	defer w.close()
	base, info, err := w.follow()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, w.errorf("want a file, found a folder")
	}
	file, err := w.open(base, info)
	if err == nil {
		f.opened.add(file.Name())
	}
	return file, err
}

// OpenRoot opens the folder that name leads to. The caller closes it. Errors: as those of
// Open.
func (f Folder) OpenRoot(name string) (*os.Root, error) {
	w, err := f.walk(name)
	if err != nil {
		return nil, err
	}
	defer w.close()
	_, info, err := w.follow()
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, w.errorf("want a folder, found %s", kind(info.Mode()))
	}
	return w.take(), nil
}

// Names lists the names in the folder that name leads to, in order. Errors: as those of
// Open.
func (f Folder) Names(name string) ([]string, error) {
	root, err := f.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s: cannot be read: %w", name, cause(err))
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Check reports whether Open would succeed, or OpenRoot if folder is true. The answer holds
// only at that moment. To use the file, open it and check the error.
func (f Folder) Check(name string, folder bool) error {
	if folder {
		root, err := f.OpenRoot(name)
		if err != nil {
			return err
		}
		return root.Close()
	}
	file, err := f.Open(name)
	if err != nil {
		return err
	}
	return file.Close()
}

// maxShown bounds the files and folders below a folder that is shown to a program.
const maxShown = 200_000

// Show checks that the file or folder that name leads to, with all its content, may be shown
// to an untrusted program. The Folder itself may not. Errors: CodeInvalid, as those of Open,
// and for a folder that contains a private one.
func (f Folder) Show(name string) error {
	if filepath.Clean(filepath.FromSlash(name)) == "." {
		return registry.Errorf(registry.CodeInvalid, "%s: is %s with everything in it: want a folder below it", name, f.what)
	}
	if f.Check(name, false) == nil {
		return nil
	}
	_, err := f.Tree(name, maxShown)
	return err
}

// Tree lists all files and links below the folder that name leads to, as names for Open.
// Errors: CodeInvalid, as those of Open; for a folder that contains a private one; and for
// more than limit files and folders.
func (f Folder) Tree(name string, limit int) ([]string, error) {
	root, err := f.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var names []string
	secrets, seen := f.secrets(), 0
	err = fs.WalkDir(root.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: cannot be read: %w", name, cause(err))
		}
		if seen++; seen > limit {
			return registry.Errorf(registry.CodeInvalid, "%s: has more than %d files and folders", name, limit)
		}
		info, err := root.Lstat(at)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: cannot be read: %w", name, cause(err))
		}
		if f.linked(info) {
			return registry.Errorf(registry.CodeInvalid,
				"%s: %s in it is a hard link to a file of the data directory or the keys", name, at)
		}
		if !entry.IsDir() {
			names = append(names, path.Join(filepath.ToSlash(name), at))
			return nil
		}
		if secrets.has(path.Base(at), info) {
			return registry.Errorf(registry.CodeInvalid,
				"%s: has %s in it, which holds keys or stored models: move one of them", name, at)
		}
		return nil
	})
	return names, err
}

// secrets are the private folders that exist now.
type secrets []fs.FileInfo

func (f Folder) secrets() secrets {
	var found secrets
	for _, path := range f.private {
		if info, err := os.Stat(path); err == nil {
			found = append(found, info)
		}
	}
	return found
}

// has reports whether a folder with that name is private. It ignores case, since some file
// systems do.
func (s secrets) has(name string, info fs.FileInfo) bool {
	return strings.EqualFold(name, DataFolder) ||
		slices.ContainsFunc(s, func(secret fs.FileInfo) bool { return os.SameFile(secret, info) })
}

// open opens the file that follow found in the last folder.
func (w *walk) open(base string, found fs.FileInfo) (*os.File, error) {
	if !found.Mode().IsRegular() { // opening a device can already have effects
		return nil, w.errorf("want a file, found %s", kind(found.Mode()))
	}
	// O_NONBLOCK: a pipe that takes the place of the file must not make us wait.
	file, err := w.last().OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, w.failed(err)
	}
	opened, err := file.Stat()
	switch {
	case err != nil:
		err = w.failed(err)
	case !os.SameFile(found, opened):
		err = w.exchanged()
	case w.folder.linked(opened):
		err = w.errorf("is a hard link to a file of the data directory or the keys: want a separate file")
	case kernelView(file):
		err = w.errorf("is a view of the kernel with information about this machine: want a file")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// kind names a kind of file.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsRegular():
		return "a file"
	}
	return "something special"
}
