package node

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
)

var (
	libraryPattern  = regexp.MustCompile(`^libonnxruntime\.so\.([0-9]{1,4}(?:\.[0-9]{1,4}){2})$`)
	distInfoPattern = regexp.MustCompile(`^onnxruntime(?:_gpu)?-([0-9]{1,4}(?:\.[0-9]{1,4}){2})\.dist-info$`)
)

// findONNXRuntime returns the version of ONNX Runtime that a program started here would load,
// or "". It takes the newest library in the first folder that has one, in the order of the
// dynamic loader; otherwise the package that python3 would import. The version is part of the
// file name, so no library is loaded and no program started.
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

// newest returns the highest version among the file names of a folder.
func newest(dir string, pattern *regexp.Regexp) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range entries {
		if m := pattern.FindStringSubmatch(e.Name()); m != nil && (found == "" || artifact.CompareVersions(m[1], found) > 0) {
			found = m[1]
		}
	}
	return found
}

// loaderDirs lists the folders that the dynamic loader searches, in its order: ld.so(8).
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

// confDirs reads the folders of an ld.so.conf. Each line has a folder, a comment that begins
// with '#', or "include PATTERN": ldconfig(8).
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

// glob returns the absolute paths of the machine that match a pattern, at most 256.
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

// packageDirs lists the folders in which the first python3 of PATH looks for packages: those of
// its own folder tree (a virtual environment, or /usr with Debian's dist-packages), then those
// of its link target.
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
				found, _ := filepath.Glob(filepath.Join(prefix, pattern)) // a prefix with glob metacharacters matches nothing
				dirs = append(dirs, found...)
			}
		}
		return dirs
	}
	return nil
}
