package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/child"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/python"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// This file is the only place where the parts meet.

// instance is the registry that the verbs work with: the data directory, opened.
type instance struct {
	registry.Interface
	environments registry.Environments
	db           *sqlite.DB
	blobs        registry.Blobs
	store        *oci.Store
	trust        *signer.Trust
	keys         *signer.Keyring
}

// open opens the data directory, which exists.
func (a *app) open(ctx context.Context) (*instance, error) {
	if _, err := os.Stat(a.data); errors.Is(err, fs.ErrNotExist) {
		return nil, registry.WithHint(
			registry.Errorf(registry.CodeNotFound, "no data directory %s here", a.data),
			"mlpromote build makes it; --data DIR or MLPROMOTE_DATA names another")
	}
	envs, err := environments.Load(a.data)
	if err != nil {
		return nil, err
	}
	trust, err := signer.NewTrust(envs.Trust, func(path string) ([]byte, error) {
		return os.ReadFile(environments.KeyPath(a.data, path))
	})
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, filepath.Join(a.data, "registry.db"))
	if err != nil {
		return nil, err
	}
	blobs := blob.NewDir(a.data)
	store := oci.New(func(_ context.Context, repository string) (oci.Repository, error) {
		return oci.Local(blobs, db, repository), nil
	}, oci.Options{})
	keys := a.keyring()
	svc, err := service.New(service.Config{
		Environments: envs, Catalog: db, Intents: db, Content: store,
		Verify: trust.Verify, Sign: keys.Sign, Tool: a.tool(),
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &instance{Interface: svc, environments: envs, db: db, blobs: blobs, store: store, trust: trust, keys: keys}, nil
}

// with runs f on the opened data directory and closes it.
func (a *app) with(ctx context.Context, f func(*instance) error) error {
	i, err := a.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(i), i.db.Close())
}

// create makes the data directory and, where there is no key at all, one that plays
// every role: enough for a laptop. Nothing in it is ever to be committed.
func (a *app) create() error {
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return err
	}
	if err := ignoreAll(a.data); err != nil {
		return err
	}
	if a.keys != "" {
		return nil
	}
	existing, err := filepath.Glob(filepath.Join(a.keyDir(), "*.key"))
	if err != nil || len(existing) > 0 {
		return err
	}
	_, err = keyfile.Generate(a.keyDir(), signer.LocalKey, a.password())
	if err == nil {
		a.ui.note("made a signing key: %s", filepath.Join(a.keyDir(), signer.LocalKey+".key"))
	}
	return err
}

func (a *app) keyDir() string {
	if a.keys != "" {
		return a.keys
	}
	return filepath.Join(a.data, "keys")
}

func (a *app) keyring() *signer.Keyring {
	return &signer.Keyring{Dir: a.keyDir(), Open: func(path string) (signer.Signer, error) {
		return keyfile.Open(path, a.password())
	}}
}

// password opens the keys; cosign's variable, so that one setting serves both.
func (a *app) password() []byte { return []byte(a.getenv("COSIGN_PASSWORD")) }

func (a *app) tool() registry.ToolIdentity {
	return registry.ToolIdentity{Name: "mlpromote", Version: a.version}
}

// pipeline is the pipeline over the opened data directory.
func (a *app) pipeline(i *instance) *pipeline.Pipeline {
	return &pipeline.Pipeline{
		Registry: i, Parts: i.store, Evidence: i.store,
		Sign: i.keys.Sign, CheckBundle: i.trust.Verify, ReadPart: oci.ReadPart,
		Toolchain: a.toolchain(true), Node: a.describe,
		Tool: a.tool(), Progress: a.ui.progress,
	}
}

// cacheRoot is where installs and finished steps are shared between projects.
func (a *app) cacheRoot() (string, error) {
	return install.Root(a.getenv("MLPROMOTE_CACHE"))
}

func (a *app) installer() (*install.Installer, error) {
	root, err := a.cacheRoot()
	return &install.Installer{Root: root, Python: a.getenv("MLPROMOTE_PYTHON")}, err
}

// toolchain gives the drivers of a toolchain, once per run of the program; missing
// ones are installed where demand says so.
func (a *app) toolchain(demand bool) func(context.Context, string) (pipeline.Toolchain, error) {
	var once sync.Mutex
	var made *pipeline.Toolchain
	return func(ctx context.Context, name string) (pipeline.Toolchain, error) {
		once.Lock()
		defer once.Unlock()
		if made != nil {
			return *made, nil
		}
		installer, err := a.installer()
		if err != nil {
			return pipeline.Toolchain{}, err
		}
		_, err = installer.Find(name)
		if registry.HasCode(err, registry.CodeUnavailable) && demand {
			_, err = a.install(ctx, installer, name)
		}
		if err != nil {
			return pipeline.Toolchain{}, err
		}
		tools := drivers(installer, name)
		made = &tools
		return tools, nil
	}
}

// drivers are those of the one toolchain there is so far.
func drivers(installer *install.Installer, name string) pipeline.Toolchain {
	engines := ort.New(ort.Options{Installs: installer})
	quantizer := python.New(python.Installed(installer, name), child.Budget{})
	cache := toolchain.NewStore(filepath.Join(installer.Root, "steps"))
	return pipeline.Toolchain{
		Engines:   toolchain.Cache(engines, cache),
		Timing:    engines,
		Quantizer: toolchain.Cache(quantizer, cache),
	}
}

// describe reads this machine; what is given is what our own toolchains bring.
func (a *app) describe(ctx context.Context, runtimes map[string]string) (registry.Node, error) {
	return node.Describe(ctx, node.Options{Runtimes: runtimes})
}
