package programtest

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// What an image for tests on CPUs can do without.
var notInImage = regexp.MustCompile(`/(site-packages|test|idlelib|tkinter|lib2to3|ensurepip|config-[^/]*|__pycache__)$|_(gpu|npu|tensorflow|tensorflow_lite|paddle|pytorch|jax)_?[a-z]*\.so`)

// WritePython writes the file system of an image as a tar archive: the interpreter of a virtual environment with its library, the packages
// of the environment that match patterns, and the shared libraries that they are linked to. Python is in /opt/python.
func WritePython(w io.Writer, interpreter string, packages ...string) error {
	binary, err := filepath.EvalSymlinks(interpreter)
	if err != nil {
		return err
	}
	out, err := exec.Command(interpreter, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").Output() //nolint:noctx // it ends at once
	if err != nil {
		return fmt.Errorf("%s: %w", interpreter, err)
	}
	library := path.Join("lib", strings.TrimSpace(string(out)))
	image := imageWriter{tar: tar.NewWriter(w), loaded: []string{binary}}
	if err := image.file(binary, "opt/python/bin/python3"); err != nil {
		return err
	}
	if err := image.tree(filepath.Join(filepath.Dir(filepath.Dir(binary)), library), path.Join("opt/python", library)); err != nil {
		return err
	}
	site := path.Join(library, "site-packages")
	for _, pattern := range packages {
		folders, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(interpreter)), site, pattern))
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if err := image.tree(folder, path.Join("opt/python", site, filepath.Base(folder))); err != nil {
				return err
			}
		}
	}
	if err := image.linked(); err != nil {
		return err
	}
	return image.tar.Close()
}

// imageWriter writes the layer of an image.
type imageWriter struct {
	tar    *tar.Writer
	loaded []string // programs and shared libraries so far
}

func (i *imageWriter) tree(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != from && notInImage.MatchString(name):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if strings.Contains(entry.Name(), ".so") {
			i.loaded = append(i.loaded, name)
		}
		return i.file(name, path.Join(to, filepath.ToSlash(relative)))
	})
}

// file writes a file, or what a link leads to.
func (i *imageWriter) file(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := i.tar.WriteHeader(&tar.Header{Name: to, Mode: int64(info.Mode().Perm()), Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.Copy(i.tar, f)
	return err
}

// linked writes the libraries of the system that the loaded files need, where they lie.
func (i *imageWriter) linked() error {
	out, err := exec.Command("ldd", i.loaded...).CombinedOutput() //nolint:noctx // it ends at once
	if len(out) == 0 {
		return err
	}
	written := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)(?:=> |^\s+)(/(?:usr/)?lib\S*|/\S*/libpython\S*) \(0x`).FindAllStringSubmatch(string(out), -1) {
		if written[found[1]] {
			continue
		}
		written[found[1]] = true
		if err := i.file(found[1], strings.TrimPrefix(found[1], "/")); err != nil {
			return err
		}
	}
	return nil
}
