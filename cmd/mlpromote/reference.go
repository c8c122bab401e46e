package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// lastBuildFile remembers the last build of a folder. It lies where the folder's own
// data directory is by default, whatever --data says.
const lastBuildFile = "last-build"

func rememberBuild(spec string, ref registry.Reference) error {
	dir := filepath.Join(filepath.Dir(spec), defaultData)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := ignoreAll(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, lastBuildFile), []byte(ref.String()+"\n"), 0o644)
}

// ignoreAll keeps a folder out of version control.
func ignoreAll(dir string) error {
	path := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte("*\n"), 0o644)
}

// reference is the one that was named, or that of the last build in this folder.
func (a *app) reference(args []string) (registry.Reference, error) {
	if len(args) == 1 {
		return registry.ParseReference(args[0])
	}
	data, err := os.ReadFile(filepath.Join(defaultData, lastBuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Reference{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "no reference, and nothing was built in this folder yet"),
			"name one, for example staging/vision/digits:1.0.0, or mlpromote build")
	}
	if err != nil {
		return registry.Reference{}, err
	}
	return registry.ParseReference(strings.TrimSpace(string(data)))
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
