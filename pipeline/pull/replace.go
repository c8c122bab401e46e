package pull

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// maxNamed is how many added files a refusal names.
const maxNamed = 5

// replaceable refuses a folder that Pull may not replace: one that Pull did not make, one that
// is a mount point and so cannot be exchanged, and one with files that somebody added, which
// would be lost. A pulled file that was changed is no reason: to pull again mends it. Errors:
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
		registry.Errorf(registry.CodeInvalid, "%s has what no pull put there: %s%s", dir, strings.Join(added, ", "), more),
		"pull replaces the whole folder: move these away, or name another folder")
}

// added lists what is in a pulled folder and was not pulled, by its path in it: files, links
// and folders without a pulled file in them.
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
			return fs.SkipDir // named as a whole
		}
		return nil
	})
	return added, err
}

// pulledFiles are the paths that Pull made in a folder, but for the bundles, and whether each
// is a folder. The manifest there says which they are, even if it was changed: that can make
// Pull refuse the folder, or replace files that whoever changed it has named in it.
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

// unknownFiles says that a folder may have files that somebody added.
func unknownFiles(dir string, cause error) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: its manifest does not say any more which files were pulled: %w", dir, cause),
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
