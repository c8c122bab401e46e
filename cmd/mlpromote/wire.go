package main

import (
	"cmp"
	"context"
	"path/filepath"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// with runs f on the registry that the flags name, and closes it.
func (a *app) with(ctx context.Context, f func(*wiring.Instance) error) error {
	return a.at().With(ctx, f)
}

// tools says where toolchains are.
func (a *app) tools() toolchains.Config {
	return toolchains.Config{Manifests: a.toolchains, Private: []string{a.Data, a.at().KeyDir()}, Getenv: a.getenv, UI: a.ui}
}

// pipeline is the pipeline over the opened data directory. m remembers what drivers
// do; nil remembers nothing. own are what takes the place of installs.
func (a *app) pipeline(i *wiring.Instance, m *toolchains.BuildCache, own toolchains.Replacements) *run.Env {
	env := a.localPipeline(m, own, a.tools().InstallMissing)
	env.Registry, env.Parts, env.Sign, env.Space = i, i.Store, i.Keys.Sign, a.space
	env.Inspected = a.Registry != "" && !i.Envs.First().External()
	env.OpenKey = func(ctx context.Context, role registry.Role, environment, model string) error {
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
		public := cmp.Or(a.at().PublicKeyFile(role, s), "FILE.pub")
		if whole, err := filepath.Abs(public); err == nil { // the command is for another folder
			public = whole
		}
		return registry.WithHint(trusting.CheckSigner(role, trusting.ResourceURI(environment, model), s.KeyID()),
			"in the folder where the data directory of the registry is, with this public key: mlpromote trust add %s --name NAME --role %s --env %s",
			public, role, environment)
	}
	return env
}

// localSpec loads a spec and checks its files, for a pipeline without a registry that installs the toolchains that are missing.
func (a *app) localSpec(file string, own toolchains.Replacements) (*spec.Spec, *run.Env, error) {
	s, err := a.tools().LoadSpec(file)
	if err != nil {
		return nil, nil, err
	}
	if err := ingest.CheckFiles(s); err != nil {
		return nil, nil, err
	}
	m, err := a.tools().OpenLocal()
	if err != nil {
		return nil, nil, err
	}
	return s, a.localPipeline(m, own.Or(s), a.tools().InstallMissing), nil
}

// localPipeline is a pipeline without a registry.
func (a *app) localPipeline(m *toolchains.BuildCache, own toolchains.Replacements, missing toolchains.WhenMissing) *run.Env {
	env := a.tools().Pipeline(m, own, missing)
	env.Tool = a.at().Tool()
	return env
}
