package pull

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// maxNamed is how many added files an error names.
const maxNamed = 5

// replaceable refuses a folder that Pull may not replace: one that Pull did not make, a mount
// point, which cannot be exchanged, and one with added files, which would be lost. A changed
// file of the pull is not a reason to refuse, because pulling again repairs it. Errors:
// CodeInvalid.
func (c Checker) replaceable(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	foreign := registry.Errorf(registry.CodeInvalid, "%s exists and was not made by pull: name another folder, or remove it", dir)
	if !info.IsDir() {
		return foreign
	}
	mounted, err := isMountPoint(dir)
	if err != nil {
		return err
	}
	if mounted {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s is a mount point: pull replaces its folder in one step, which no mount point allows", dir),
			"name a folder inside it: %s", filepath.Join(dir, "engine"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	if _, err := readRecord(dir); err != nil {
		return foreign
	}
	added, err := c.added(dir)
	if err != nil || len(added) == 0 {
		return err
	}
	more := ""
	if len(added) > maxNamed {
		added, more = added[:maxNamed], " and others"
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s has files that no pull put there: %s%s", dir, strings.Join(added, ", "), more),
		"pull replaces the whole folder: move these away, or name another folder")
}

// added lists what is in a pulled folder but was not pulled, by its path in the folder: files,
// links, and folders without a pulled file in them.
func (c Checker) added(dir string) ([]string, error) {
	pulled, err := c.pulledFiles(dir)
	if err != nil {
		return nil, err
	}
	var added []string
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err = filepath.Rel(dir, name)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		if folder, known := pulled[name]; known && folder == entry.IsDir() || isBundle(name) && entry.Type().IsRegular() {
			return nil
		}
		added = append(added, name)
		if entry.IsDir() {
			return fs.SkipDir // listed as one folder
		}
		return nil
	})
	return added, err
}

// pulledFiles returns the paths that Pull created in a folder, except the bundles, and whether
// each is a folder. It takes them from the manifest in the folder, even if that was changed. A
// changed manifest can only make Pull refuse the folder, or replace files that the manifest
// names.
func (c Checker) pulledFiles(dir string) (map[string]bool, error) {
	manifest, err := readBounded(filepath.Join(dir, Dir, pulledManifest))
	if err != nil {
		return nil, unknownFiles(dir, err)
	}
	part, err := c.ReadPart(manifest)
	if err != nil {
		return nil, unknownFiles(dir, err)
	}
	return expectedPaths(part), nil
}

// unknownFiles returns the error for a folder that may have added files.
func unknownFiles(dir string, cause error) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: its manifest no longer lists the pulled files: %w", dir, cause),
		"name another folder, or remove this one")
}

// readBounded reads a document of a pulled folder.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "%w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPulledDocument {
		return nil, registry.Errorf(registry.CodeTrust, "%s: want a file of at most %d bytes", path, maxPulledDocument)
	}
	return os.ReadFile(path)
}
