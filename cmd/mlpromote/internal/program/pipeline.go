package program

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// space is what is free where builds write: steps in the folder for temporary files, what
// they leave in the cache, and the content of the registry in the data directory.
func (a *App) space(context.Context) (run.Space, error) {
	cache, err := a.Toolchains().Root()
	if err != nil {
		return run.Space{}, err
	}
	places := []string{os.TempDir(), cache}
	if a.Registry == "" && a.Storage == "" {
		places = append(places, a.Data)
	}
	var least run.Space
	for i, place := range places {
		free, err := freeIn(place)
		if err != nil {
			return run.Space{}, err
		}
		if i == 0 || free < least.Free {
			least = run.Space{Where: place, Free: free}
		}
	}
	return least, nil
}

// freeIn is what a user may still write to the file system of a folder that may not be
// there yet.
func freeIn(folder string) (int64, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return 0, err
	}
	for {
		var s unix.Statfs_t
		err := unix.Statfs(folder, &s)
		if err == nil {
			return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
		}
		if parent := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && parent != folder {
			folder = parent
			continue
		}
		return 0, err
	}
}

// Pipeline is the pipeline over the opened data directory. m remembers what drivers
// do; nil remembers nothing. own are what takes the place of installs.
func (a *App) Pipeline(i *wiring.Instance, m *toolchains.BuildCache, own toolchains.Replacements) *run.Env {
	var env *run.Env
	env = a.LocalPipeline(m, own, func(ctx context.Context, installer *toolchains.Installer, name string) error {
		if env.BeforeInstall != nil {
			if err := env.BeforeInstall(ctx); err != nil {
				return err
			}
		}
		return a.Toolchains().InstallMissing(ctx, installer, name)
	})
	env.Registry, env.Parts, env.Sign, env.Space = i, i.Store, i.Keys.Sign, a.space
	env.Inspected = a.Registry != "" && !i.Envs.First().External()
	env.OpenKey = func(ctx context.Context, role evidence.Role, environment, model string) error {
		s, err := i.Keys.Signer(ctx, role)
		if err != nil {
			return err
		}
		trusting := i.Envs
		if i.Local != nil { // a service says which keys it has
			if trusting.KeyIDs, err = i.KeyIDs(ctx); err != nil {
				return err
			}
		}
		public := cmp.Or(a.At().PublicKeyFile(role, s), "FILE.pub")
		if whole, err := filepath.Abs(public); err == nil { // the command is for another folder
			public = whole
		}
		return registry.WithHint(trusting.CheckSigner(role, trusting.ResourceURI(environment, model), s.KeyID()),
			"in the folder where the data directory of the registry is, with this public key: mlpromote trust add %s --name NAME --role %s, "+
				"for all environments, since a promotion asks again in its destination", public, role)
	}
	return env
}

// LocalSpec loads a spec and checks its files, for a pipeline without a registry that installs the toolchains that are missing.
func (a *App) LocalSpec(file string, own toolchains.Replacements) (*spec.Spec, *run.Env, error) {
	s, err := a.Toolchains().LoadSpec(file)
	if err != nil {
		return nil, nil, err
	}
	if err := ingest.CheckFiles(s); err != nil {
		return nil, nil, err
	}
	m, err := a.Toolchains().OpenLocal()
	if err != nil {
		return nil, nil, err
	}
	return s, a.LocalPipeline(m, own.Or(s), a.Toolchains().InstallMissing), nil
}

// LocalPipeline is a pipeline without a registry.
func (a *App) LocalPipeline(m *toolchains.BuildCache, own toolchains.Replacements, missing toolchains.WhenMissing) *run.Env {
	env := a.Toolchains().Pipeline(m, own, missing)
	env.Tool = a.At().Tool()
	return env
}
