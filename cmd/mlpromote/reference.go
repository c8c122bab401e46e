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

// lastBuildFile remembers the last build in a working directory. It lies where the
// data directory is by default, whatever --data says.
const lastBuildFile = "last-build"

func rememberBuild(ref registry.Ref) error {
	if err := os.MkdirAll(defaultData, 0o700); err != nil {
		return err
	}
	if err := ignoreAll(defaultData); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(defaultData, lastBuildFile), []byte(ref.String()+"\n"), 0o600)
}

// ignoreAll keeps a folder out of version control.
func ignoreAll(dir string) error {
	path := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte("*\n"), 0o600)
}

// reference is the one that was named, or that of the last build in this folder. A
// host in it must be that of the registry at work, or of the environment.
func (a *app) reference(i *instance, args []string) (registry.Ref, error) {
	text, err := named(args)
	if err != nil {
		return registry.Ref{}, err
	}
	ref, err := registry.ParseRef(text)
	if err != nil {
		return registry.Ref{}, err
	}
	a.subject = ref.String()
	switch host := i.hostOf(ref.Environment); {
	case ref.Host == "" || ref.Host == host:
		ref.Host = ""
		return ref, nil
	case host != i.host:
		return registry.Ref{}, registry.Errorf(registry.CodeInvalid, "reference %s is on %s, and environment %s is on %s", text, ref.Host, ref.Environment, host)
	default:
		return registry.Ref{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "reference %s is on %s, and this is %s", text, ref.Host, i.name(a)),
			"--registry http://%s", ref.Host)
	}
}

func named(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	data, err := os.ReadFile(filepath.Join(defaultData, lastBuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "no reference, and nothing was built in this folder yet"),
			"name one, for example staging/vision/digits:1.0.0, or mlpromote build")
	}
	return strings.TrimSpace(string(data)), err
}

// name is what messages call the registry.
func (i *instance) name(a *app) string {
	if i.host != "" {
		return i.host
	}
	return "the data directory " + a.data
}

// hostOf is the registry that has the content of an environment, or "" for the data
// directory.
func (i *instance) hostOf(environment string) string {
	if e, err := i.environments.Find(environment); err == nil && e.External() {
		return e.Registry
	}
	return i.host
}

// reference puts the registry's host in front of a reference that has none.
func (i *instance) reference(ref string) string {
	if parsed, err := registry.ParseRef(ref); err != nil || parsed.Host != "" || i.host == "" {
		return ref
	}
	return i.host + "/" + ref
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
