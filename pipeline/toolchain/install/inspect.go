package install

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// inspect records what was installed on disk.
func inspect(r *Record, source drivers.Source) error {
	site, err := one(filepath.Join(r.Dir, installed.VenvDir, "lib", "python3*", "site-packages"))
	if err != nil {
		return err
	}
	if r.Versions, err = versions(site); err != nil {
		return err
	}
	if r.Version = r.Versions[source.Package]; r.Version == "" {
		return registry.Errorf(registry.CodeInternal, "%s: the install has no package %s", source.Name, source.Package)
	}
	if source.Library == "" {
		return nil
	}
	path, err := one(filepath.Join(site, filepath.FromSlash(source.Library)))
	if err != nil {
		return err
	}
	if r.LibraryDigest, r.LibrarySize, err = toolchain.HashFile(path); err != nil {
		return err
	}
	relative, err := filepath.Rel(r.Dir, path)
	r.Library = filepath.ToSlash(relative)
	return err
}

// one returns the only path that matches a pattern.
func one(pattern string) (string, error) {
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) != 1 {
		err = registry.Errorf(registry.CodeInternal, "%d files match %s, expected one", len(paths), pattern)
	}
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// versions reads the packages of an environment from the names of their metadata directories,
// <name>-<version>.dist-info, with normalized names
// (https://packaging.python.org/en/latest/specifications/name-normalization/).
func versions(site string) (map[string]string, error) {
	dirs, err := filepath.Glob(filepath.Join(site, "*.dist-info"))
	if err != nil {
		return nil, err
	}
	found := make(map[string]string, len(dirs))
	for _, dir := range dirs {
		name, version, ok := strings.Cut(strings.TrimSuffix(filepath.Base(dir), ".dist-info"), "-")
		if name = strings.ToLower(separators.ReplaceAllString(name, "-")); ok && name != "pip" && name != "setuptools" {
			found[name] = version
		}
	}
	return found, nil
}

// write writes the record, which makes the install complete. All other files are flushed to
// disk before.
func write(r *Record) (err error) {
	if r.Size, err = treeSize(r.Dir); err != nil {
		return err
	}
	return writeRecord(r.Dir, r)
}

// writeRecord writes the record of the install in a folder.
func writeRecord(dir string, r *Record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "record of %s: %w", r.Name, err)
	}
	return atomicfile.Write(filepath.Join(dir, installed.RecordFile), append(text, '\n'), 0o600)
}

// treeSize returns the size of the files below dir in bytes.
func treeSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
