package node

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

var (
	libraryPattern  = regexp.MustCompile(`^libonnxruntime\.so\.([0-9]{1,4}(?:\.[0-9]{1,4}){2})$`)
	distInfoPattern = regexp.MustCompile(`^onnxruntime(?:_gpu)?-([0-9]{1,4}(?:\.[0-9]{1,4}){2})\.dist-info$`)
)

// findONNXRuntime gives the version of ONNX Runtime that a program started here would
// load: the newest in the first folder that has one, in the loader's order, and after
// that what the python3 of PATH would import. Empty means none. The number is in the
// name of a file, so nothing is loaded or started.
func findONNXRuntime(o Options) string {
	for _, dir := range loaderDirs(o) {
		if v := newest(o.path(dir), libraryPattern); v != "" {
			return v
		}
	}
	for _, dir := range packageDirs(o) {
		if v := newest(dir, distInfoPattern); v != "" {
			return v
		}
	}
	return ""
}

// newest gives the highest version that the names in a folder hold.
func newest(dir string, pattern *regexp.Regexp) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range entries {
		if m := pattern.FindStringSubmatch(e.Name()); m != nil && (found == "" || registry.CompareVersions(m[1], found) > 0) {
			found = m[1]
		}
	}
	return found
}

// loaderDirs are the folders that the dynamic loader searches, in its order: ld.so(8).
func loaderDirs(o Options) []string {
	var dirs []string
	isSeparator := func(r rune) bool { return r == ':' || r == ';' }
	for _, dir := range strings.FieldsFunc(o.Getenv("LD_LIBRARY_PATH"), isSeparator) {
		if filepath.IsAbs(dir) { // a relative one depends on where a program is started
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, confDirs(o, "/etc/ld.so.conf", maxInclude)...)
	return append(dirs, "/lib", "/usr/lib", "/lib64", "/usr/lib64")
}

// maxInclude is how deep includes of ld.so.conf are followed, since they may be circular.
const maxInclude = 3

// confDirs reads the folders of an ld.so.conf: one a line, '#' for comments, and
// "include PATTERN", as ldconfig(8) says.
func confDirs(o Options, conf string, depth int) []string {
	var dirs []string
	for line := range strings.Lines(readText(o.path(conf))) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		pattern, isInclude := strings.CutPrefix(line, "include ")
		switch {
		case isInclude && depth > 0:
			for _, file := range o.glob(absoluteFrom(conf, strings.TrimSpace(pattern))) {
				dirs = append(dirs, confDirs(o, file, depth-1)...)
			}
		case filepath.IsAbs(line):
			dirs = append(dirs, line)
		}
	}
	return dirs
}

func absoluteFrom(file, pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return filepath.Join(filepath.Dir(file), pattern)
}

// glob gives the absolute paths of the machine that match a pattern, at most 256.
func (o Options) glob(pattern string) []string {
	matches, _ := filepath.Glob(o.path(pattern)) // a malformed pattern matches nothing
	var paths []string
	for _, m := range matches[:min(len(matches), 256)] {
		if rel, err := filepath.Rel(o.Root, m); err == nil {
			paths = append(paths, "/"+rel)
		}
	}
	return paths
}

// packageDirs are the folders in which the first python3 of PATH looks for packages:
// those of the folder tree that it stands in (a virtual environment, or /usr with
// Debian's dist-packages), then those of what it is a link to.
func packageDirs(o Options) []string {
	for _, dir := range filepath.SplitList(o.Getenv("PATH")) {
		python := o.path(filepath.Join(dir, "python3"))
		if info, err := os.Stat(python); !filepath.IsAbs(dir) || err != nil || info.IsDir() {
			continue
		}
		prefixes := []string{filepath.Dir(filepath.Dir(python))}
		if target, err := filepath.EvalSymlinks(python); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(target)))
		}
		var dirs []string
		for _, prefix := range prefixes {
			for _, pattern := range []string{"lib/python3*/site-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages"} {
				found, _ := filepath.Glob(filepath.Join(prefix, pattern)) // a prefix with glob signs finds nothing
				dirs = append(dirs, found...)
			}
		}
		return dirs
	}
	return nil
}
