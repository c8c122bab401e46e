package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/gc"
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
	refs    registry.RepositoryRecords // of db, safe beside collectors: catalog and latest are of db, too
	catalog registry.Catalog
	latest  registry.Latest
	records registry.HistoryIndex
	blobs   *blobStorage
	spared  registry.Blobs   // blobs, safe beside collectors: to store in
	uploads registry.Uploads // they end in blobs, as safe
}

// openLocal opens the data directory, which exists and which no service has to itself.
func (a *app) openLocal(ctx context.Context) (*instance, error) {
	if _, err := os.Stat(a.data); errors.Is(err, fs.ErrNotExist) {
		return nil, noData(a.data)
	}
	unlock, err := a.dir().LockShared(ctx, a.waiting)
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

// openDirectory opens the data directory without a lock, for a verb.
func (a *app) openDirectory(ctx context.Context) (*instance, error) {
	own, err := a.files().Read()
	if err != nil {
		return nil, err
	}
	here, err := a.openCatalog(ctx)
	if err != nil {
		return nil, err
	}
	i, err := a.instanceBy(here, own, a.keyring())
	if err != nil {
		return nil, errors.Join(err, here.db.Close())
	}
	write, resolve := a.agreementOf(here, own)
	i.Interface, i.agreed = config.Registry(i.Interface, write, resolve), resolve
	return i, nil
}

// openCatalog opens catalog and content of the data directory.
func (a *app) openCatalog(ctx context.Context) (*local, error) {
	db, err := a.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	blobs, err := a.openStorage(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	here := &local{db: db, refs: db, catalog: db, latest: db, records: db, blobs: blobs}
	if a.telemetry != nil {
		here.refs, here.catalog, here.latest, here.records = a.telemetry.Refs(db), a.telemetry.Catalog(db), a.telemetry.Latest(db), a.telemetry.Records(db)
	}
	safe := gc.SafeStore{Garbage: db, Remover: blobs.remover}
	here.spared, here.uploads, here.refs = safe.Blobs(blobs.Blobs), safe.Uploads(blobs.uploads), safe.Refs(here.refs, blobs.Blobs)
	return here, nil
}

// instanceBy is the registry of a data directory by a configuration. keys sign.
func (a *app) instanceBy(here *local, own config.Snapshot, keys *signer.Keyring) (*instance, error) {
	trust, err := signer.NewTrust(own.Environments.Trust, own.Key)
	if err != nil {
		return nil, err
	}
	content := a.repositories(func(repository string) (oci.Repository, error) {
		return oci.Local(here.spared, here.refs, repository), nil
	})
	content.Environments = own.Environments
	store := oci.New(content.Open, oci.Options{Progress: a.ui.Hashing()})
	sign := keys.Sign
	if a.telemetry != nil { // which a service alone has
		sign = signServed(keys)
	}
	svc, err := service.New(service.Config{
		Environments: own.Environments, Catalog: here.catalog, Records: here.records, Listing: here.db, Intents: here.db, Content: store, Mirror: store,
		Verify: trust.Verify, Sign: sign, Manifests: here.db, NodeTypes: a.localNodeTypes(here.db), Tool: a.tool(), Now: now,
	})
	if err != nil {
		return nil, err
	}
	return &instance{
		Interface: service.Remember(svc, here.latest, resolveMemory), environments: own.Environments, store: store, content: content, verify: trust.Verify, keys: keys,
		nodeTypes: a.localNodeTypes(here.db), local: here, service: svc, headFaults: svc.HeadFaults, close: here.db.Close,
	}, nil
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
		a.ui.Note("made a signing key: %s", filepath.Join(a.keyDir(), signer.LocalKey+".key"))
	}
	return err
}
