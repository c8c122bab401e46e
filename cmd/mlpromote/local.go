package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// resolveMemory is how many bytes of releases and evidence are remembered for resolves.
const resolveMemory = 64 << 20

// local is the data directory itself.
type local struct {
	db      database
	refs    registry.Refs // of db, and so are catalog and latest
	catalog registry.Catalog
	latest  registry.Latest
	blobs   *blobStorage
	spared  registry.Blobs   // blobs, safe beside collectors: to store in
	uploads registry.Uploads // they end in blobs, as safe
}

// openLocal opens the data directory, which exists and which no service has to itself.
func (a *app) openLocal(ctx context.Context) (*instance, error) {
	if _, err := os.Stat(a.data); errors.Is(err, fs.ErrNotExist) {
		return nil, noData(a.data)
	}
	unlock, err := lockShared(a.data)
	if err != nil {
		return nil, err
	}
	i, err := a.openDirectory(ctx)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	closeDB := i.close
	i.close = func() error { return errors.Join(closeDB(), unlock()) }
	return i, nil
}

func noData(dir string) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeNotFound, "no data directory %s here", dir),
		"mlpromote build makes it; --data DIR or MLPROMOTE_DATA names another")
}

// openDirectory opens the data directory without a lock.
func (a *app) openDirectory(ctx context.Context) (*instance, error) {
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
	db, err := a.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	blobs, err := a.openStorage(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	here := &local{db: db, refs: db, catalog: db, latest: db, blobs: blobs, spared: service.Spare(blobs.Blobs, db), uploads: service.SpareUploads(blobs.uploads, db)}
	if a.telemetry != nil {
		here.refs, here.catalog, here.latest = a.telemetry.Refs(db), a.telemetry.Catalog(db), a.telemetry.Latest(db)
	}
	content := a.contents(func(repository string) (oci.Repository, error) {
		return oci.Local(here.spared, here.refs, repository), nil
	})
	content.environments = envs
	store := oci.New(content.open, oci.Options{Progress: a.ui.hashing()})
	keys := a.keyring()
	sign := keys.Sign
	if a.telemetry != nil { // which a service alone has
		sign = signServed(keys)
	}
	svc, err := service.New(service.Config{
		Environments: envs, Catalog: here.catalog, Listing: db, Intents: db, Content: store, Mirror: store,
		Verify: trust.Verify, Sign: sign, Tool: a.tool(),
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &instance{Interface: service.Remember(svc, here.latest, resolveMemory), environments: envs, store: store, content: content, verify: trust.Verify, keys: keys, nodeTypes: a.localNodeTypes(db), local: here, close: db.Close}, nil
}

// create makes the data directory and, where there is no key at all, one that plays
// every role: enough for a laptop. A service would not trust it, so beside one none is
// made. Nothing in the directory is ever to be committed.
func (a *app) create() error {
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return err
	}
	if err := ignoreAll(a.data); err != nil {
		return err
	}
	if a.keys != "" || a.registry != "" {
		return nil
	}
	existing, err := filepath.Glob(filepath.Join(a.keyDir(), "*.key"))
	if err != nil || len(existing) > 0 {
		return err
	}
	_, err = keyfile.Generate(a.keyDir(), signer.LocalKey, a.password())
	if registry.HasCode(err, registry.CodeConflict) {
		return nil // another process was first
	}
	if err == nil {
		a.ui.note("made a signing key: %s", filepath.Join(a.keyDir(), signer.LocalKey+".key"))
	}
	return err
}
