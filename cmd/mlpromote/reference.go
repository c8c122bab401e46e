package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// lastBuildFile remembers the last build in a working directory. It lies where the
// data directory is by default, whatever --data says.
const lastBuildFile = "last-build"

// rememberBuild remembers a build as the last one of the working directory.
func rememberBuild(ref registry.Ref) error {
	if err := os.MkdirAll(connect.DefaultData, 0o700); err != nil {
		return err
	}
	if err := wiring.IgnoreAll(connect.DefaultData); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(connect.DefaultData, lastBuildFile), []byte(ref.String()+"\n"), 0o600)
}

// reference returns the ref that the user gave, or that of the last build in this folder. Its
// host must be that of the registry in use, or of the environment.
func (a *app) reference(i *wiring.Instance, args []string) (registry.Ref, error) {
	text, err := named(args)
	if err != nil {
		return registry.Ref{}, err
	}
	ref, err := registry.ParseRef(text)
	if err != nil {
		return registry.Ref{}, err
	}
	a.subject = ref.String()
	return i.WithoutHost(ref)
}

// referenceIn is reference, where a model without an environment is one of the environment.
func (a *app) referenceIn(i *wiring.Instance, environment string, args []string) (registry.Ref, error) {
	if len(args) == 1 {
		first, _, _ := strings.Cut(args[0], "/")
		_, err := i.Envs.Find(first)
		if isHost := strings.ContainsAny(first, ".:") || first == "localhost"; err != nil && !isHost {
			args = []string{environment + "/" + args[0]}
		}
	}
	return a.reference(i, args)
}

func named(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	data, err := os.ReadFile(filepath.Join(connect.DefaultData, lastBuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "no ref given, and nothing was built in this folder yet"),
			"name one, for example staging/vision/digits:1.0.0, or mlpromote build")
	}
	return strings.TrimSpace(string(data)), err
}
