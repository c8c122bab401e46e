package program

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// ModelOrReference is a reference, or a model with or without a tag: in the environment that --env of a verb names, or in the only one
// that has it.
func (a *App) ModelOrReference(ctx context.Context, i *wiring.Instance, verb, environment string, args []string) (registry.Ref, error) {
	switch {
	case environment == "" && len(args) == 1:
		return a.findModel(ctx, i, verb, args[0])
	case environment == "":
		return a.Reference(i, args)
	case len(args) == 0:
		return registry.Ref{}, registry.Errorf(registry.CodeInvalid, "%s --env %s: want a model, for example vision/digits", verb, environment)
	}
	if _, err := i.Envs.Find(environment); err != nil {
		return registry.Ref{}, err
	}
	return a.Reference(i, []string{environment + "/" + args[0]})
}

// findModel is Reference; a model without an environment is looked up in all of them, and must be in one alone.
func (a *App) findModel(ctx context.Context, i *wiring.Instance, verb, text string) (registry.Ref, error) {
	if hasEnvironment(i, text) {
		return a.Reference(i, []string{text})
	}
	var found []registry.Ref
	for _, e := range i.Envs.List {
		ref, err := registry.ParseRef(e.Name + "/" + text)
		if err != nil {
			break
		}
		_, err = i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
		switch {
		case err == nil:
			found = append(found, ref)
		case !registry.HasCode(err, registry.CodeNotFound) && !registry.HasCode(err, registry.CodeForbidden):
			return registry.Ref{}, err
		}
	}
	switch len(found) {
	case 1:
		a.Subject = found[0].String()
		return i.WithoutHost(found[0])
	case 0:
		ref, err := a.Reference(i, []string{text})
		if err != nil {
			return ref, err
		}
		_, err = i.Envs.Find(ref.Environment)
		return ref, registry.WithHint(err, "for a model, name its environment too: mlpromote %s %s --env ENV", verb, text)
	}
	var names []string
	for _, ref := range found {
		names = append(names, ref.String())
	}
	return registry.Ref{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s is in several environments: want one of %s", text, strings.Join(names, ", ")),
		"mlpromote %s %s", verb, names[0])
}

// hasEnvironment reports whether a text begins with an environment, or with a host.
func hasEnvironment(i *wiring.Instance, text string) bool {
	first, _, more := strings.Cut(text, "/")
	_, err := i.Envs.Find(first)
	return more && (err == nil || registry.IsHost(first))
}

// lastBuildFile remembers the last build in a working directory. It is in the
// default data directory, also if --data names another.
const lastBuildFile = "last-build"

// ForgetBuild forgets the last build in the working directory, before another one begins: if that fails, no verb must take the
// earlier one for it.
func ForgetBuild() error {
	err := os.Remove(filepath.Join(connect.DefaultData, lastBuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

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
	if len(args) == 1 && !hasEnvironment(i, args[0]) {
		args = []string{environment + "/" + args[0]}
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
			registry.Errorf(registry.CodeInvalid, "no ref given, and the last build in this folder did not succeed, or there was none"),
			"name one, for example staging/vision/digits:1.0.0, or mlpromote build")
	}
	return strings.TrimSpace(string(data)), err
}
