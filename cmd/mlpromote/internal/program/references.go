package program

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

// ModelOrReference is a reference, or a model in an environment that --env of a verb names, with
// or without a tag.
func (a *App) ModelOrReference(i *wiring.Instance, verb, environment string, args []string) (registry.Ref, error) {
	if environment == "" {
		ref, err := a.Reference(i, args)
		if err == nil && len(args) == 1 {
			if _, err = i.Envs.Find(ref.Environment); err != nil {
				err = registry.WithHint(err, "for a model, name its environment too: mlpromote %s %s --env ENV", verb, args[0])
			}
		}
		return ref, err
	}
	if len(args) == 0 {
		return registry.Ref{}, registry.Errorf(registry.CodeInvalid, "%s --env %s: want a model, for example vision/digits", verb, environment)
	}
	if _, err := i.Envs.Find(environment); err != nil {
		return registry.Ref{}, err
	}
	return a.Reference(i, []string{environment + "/" + args[0]})
}

// lastBuildFile remembers the last build in a working directory. It is in the
// default data directory, also if --data names another.
const lastBuildFile = "last-build"

// RememberBuild remembers a build as the last in the working directory.
func RememberBuild(ref registry.Ref) error {
	if err := os.MkdirAll(connect.DefaultData, 0o700); err != nil {
		return err
	}
	if err := wiring.IgnoreAll(connect.DefaultData); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(connect.DefaultData, lastBuildFile), []byte(ref.String()+"\n"), 0o600)
}

// Reference returns the ref that the user gave, or else the last build in this folder. Its
// host must name the registry in use, or the environment.
func (a *App) Reference(i *wiring.Instance, args []string) (registry.Ref, error) {
	text, err := named(args)
	if err != nil {
		return registry.Ref{}, err
	}
	ref, err := registry.ParseRef(text)
	if err != nil {
		return registry.Ref{}, err
	}
	a.Subject = ref.String()
	return i.WithoutHost(ref)
}

// ReferenceIn is Reference; a model without an environment is looked up in the named one.
func (a *App) ReferenceIn(i *wiring.Instance, environment string, args []string) (registry.Ref, error) {
	if len(args) == 1 {
		first, _, _ := strings.Cut(args[0], "/")
		_, err := i.Envs.Find(first)
		if isHost := strings.ContainsAny(first, ".:") || first == "localhost"; err != nil && !isHost {
			args = []string{environment + "/" + args[0]}
		}
	}
	return a.Reference(i, args)
}

func named(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	data, err := os.ReadFile(filepath.Join(connect.DefaultData, lastBuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "no ref given, and no build succeeded in this folder yet"),
			"name one, for example staging/vision/digits:1.0.0, or mlpromote build")
	}
	return strings.TrimSpace(string(data)), err
}
