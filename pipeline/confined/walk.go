package confined

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// maxLinks bounds the symbolic links that one name may lead through, as on Linux.
const maxLinks = 40

// walk follows a name through a folder. All folders on the way are open.
type walk struct {
	folder  Folder
	name    string // as it was written
	secrets secrets
	way     []*os.Root // from the folder down to the current one
	rest    []string   // components to be followed
	links   int
}

// walk begins at the folder. Errors: CodeInvalid unless name is a relative path inside it.
func (f Folder) walk(name string) (*walk, error) {
	w := &walk{folder: f, name: name}
	if f.path == "" {
		return nil, w.errorf("no folder that it could be in")
	}
	local := filepath.FromSlash(name)
	switch {
	case name == "":
		return nil, w.errorf("the path is empty: want one relative to %s", f.what)
	case filepath.IsAbs(local) || strings.HasPrefix(name, "/"):
		return nil, w.errorf("an absolute path: want one relative to %s, to a file in it", f.what)
	case !filepath.IsLocal(local):
		return nil, w.escape()
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, w.failed(err)
	}
	w.way, w.rest, w.secrets = []*os.Root{root}, components(name), f.secrets()
	return w, nil
}

func components(name string) []string {
	return strings.Split(filepath.ToSlash(name), "/")
}

// close closes all folders on the way.
func (w *walk) close() {
	for _, root := range w.way {
		_ = root.Close() // they were only read
	}
}

func (w *walk) last() *os.Root { return w.way[len(w.way)-1] }

// take hands the current folder to the caller, who closes it.
func (w *walk) take() *os.Root {
	root := w.last()
	w.way = w.way[:len(w.way)-1]
	return root
}

// follow goes to the end of the name. It returns the name of the file in the last folder,
// which is not a symbolic link, or "." for that folder itself.
func (w *walk) follow() (base string, info fs.FileInfo, err error) {
	for len(w.rest) > 0 {
		part := w.rest[0]
		w.rest = w.rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if err := w.up(); err != nil {
				return "", nil, err
			}
			continue
		}
		info, err := w.last().Lstat(part)
		switch {
		case err != nil:
			return "", nil, w.failed(err)
		case info.Mode().Type() == fs.ModeSymlink:
			err = w.expand(part)
		case info.IsDir():
			err = w.enter(part, info)
		case len(w.rest) > 0:
			return "", nil, w.errorf("%s is not a folder", w.at(part))
		default:
			return part, info, nil
		}
		if err != nil {
			return "", nil, err
		}
	}
	if info, err = w.last().Stat("."); err != nil {
		return "", nil, w.failed(err)
	}
	return ".", info, nil
}

// up goes back to the folder above.
func (w *walk) up() error {
	if len(w.way) == 1 {
		return w.escape()
	}
	return w.take().Close()
}

// expand replaces a symbolic link by its target.
func (w *walk) expand(part string) error {
	if w.links++; w.links > maxLinks {
		return w.errorf("leads through more than %d symbolic links", maxLinks)
	}
	target, err := w.last().Readlink(part)
	if err != nil {
		return w.failed(err)
	}
	if filepath.IsAbs(target) || filepath.VolumeName(target) != "" || strings.HasPrefix(target, "/") {
		return w.errorf("the symbolic link %s leads to an absolute path, %s: want a link that stays in %s, or the file itself",
			w.at(part), target, w.folder.what)
	}
	w.rest = append(components(target), w.rest...)
	return nil
}

// enter opens a folder below the last one.
func (w *walk) enter(part string, found fs.FileInfo) error {
	if w.secrets.has(part, found) {
		return w.errorf("is inside %s, which holds keys or stored models: copy the file to another folder", w.at(part))
	}
	root, err := w.last().OpenRoot(part)
	if err != nil {
		return w.failed(err)
	}
	w.way = append(w.way, root)
	opened, err := root.Stat(".")
	switch {
	case err != nil:
		return w.failed(err)
	case !os.SameFile(found, opened):
		return w.exchanged()
	}
	return nil
}

// at is the path of a component, for messages.
func (w *walk) at(part string) string {
	path, err := filepath.Rel(w.folder.path, filepath.Join(w.last().Name(), part))
	if err != nil {
		return part
	}
	return filepath.ToSlash(path)
}

func (w *walk) errorf(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "%s: %w", w.name, fmt.Errorf(format, args...))
}

func (w *walk) escape() error {
	return w.errorf("leads out of %s: want a file or folder in it", w.folder.what)
}

func (w *walk) exchanged() error {
	return w.errorf("was replaced while it was opened: run again when no program writes to %s", w.folder.what)
}

// failed wraps an error of the system.
func (w *walk) failed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return w.errorf("no such file or folder (paths start from %s)%w", w.folder.what, silent{err})
	}
	return w.errorf("cannot be read: %w", cause(err))
}

// cause is the error of the system without the path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// silent is an error that errors.Is finds but that adds no text.
type silent struct{ error }

func (silent) Error() string { return "" }

func (s silent) Unwrap() error { return s.error }
