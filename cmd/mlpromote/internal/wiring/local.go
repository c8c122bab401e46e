package wiring

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/parts"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/predicates"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/datadir"
	"mlpromote.dev/mlpromote/registry/defaults"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/remote"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/signer"
)

// resolveMemory is how many bytes of releases and evidence are remembered for resolves.
const resolveMemory = 64 << 20

// Local is the data directory itself.
type Local struct {
	DB      Database
	Refs    storage.RepositoryRecords // of db, safe beside collectors: catalog and latest are of db, too
	Catalog storage.Catalog
	latest  storage.Latest
	records history.HistoryIndex
	Blobs   *blobStorage
	Spared  storage.Blobs    // blobs, safe beside collectors: to store in
	Uploads storage.Uploads  // they end in blobs, as safe
	Replica *datadir.Replica // nil if no other process can serve the catalog
	Reserve *blob.Reserve    // nil if the content is in a bucket, or not served
}

// OpenLocal opens the data directory, which exists and which no service has to itself.
func (l Location) OpenLocal(ctx context.Context) (*Instance, error) {
	if _, err := os.Stat(l.Data); errors.Is(err, fs.ErrNotExist) {
		return nil, NoData(l.Data)
	}
	unlock, err := l.Dir().LockShared(ctx, l.Waiting)
	if err != nil {
		return nil, err
	}
	i, err := l.OpenDirectory(ctx)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	closeDB := i.Close
	i.Close = func() error { return errors.Join(closeDB(), unlock()) }
	return i, nil
}

// NoData is the error of a verb that needs a data directory where none is.
func NoData(dir string) error {
	return registry.WithHint(
		registry.Errorf(registry.CodeNotFound, "no data directory %s here", dir),
		"mlpromote build makes it; --data DIR or MLPROMOTE_DATA names another")
}

// OpenDirectory opens the data directory without a lock, for a verb.
func (l Location) OpenDirectory(ctx context.Context) (*Instance, error) {
	own, err := l.Files().Read()
	if err != nil {
		return nil, err
	}
	here, err := l.OpenCatalog(ctx)
	if err != nil {
		return nil, err
	}
	i, err := l.InstanceBy(here, own, l.Keyring())
	if err != nil {
		return nil, errors.Join(err, here.DB.Close())
	}
	write, resolve := l.agreementOf(here, own)
	i.Interface, i.Agreed = config.Registry(i.Interface, write, resolve), resolve
	k := here.Keeper(l.Keyring().SignNote, func() *Instance { return i })
	k.May, i.Checkpoints = resolve, k
	return i, nil
}

// OpenCatalog opens catalog and content of the data directory.
func (l Location) OpenCatalog(ctx context.Context) (*Local, error) {
	db, err := l.OpenDatabase(ctx)
	if err != nil {
		return nil, err
	}
	blobs, err := l.openStorage(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	here := &Local{DB: db, Refs: db, Catalog: db, latest: db, records: db, Blobs: blobs}
	if l.Telemetry != nil {
		here.Refs, here.Catalog, here.latest, here.records = l.Telemetry.Refs(db), l.Telemetry.Catalog(db), l.Telemetry.Latest(db), l.Telemetry.Records(db)
	}
	safe := gc.SafeStore{Garbage: db, Remover: blobs.remover}
	here.Spared, here.Uploads, here.Refs = safe.Blobs(blobs.Blobs), safe.Uploads(blobs.Uploads), safe.Refs(here.Refs, blobs.Blobs)
	return here, nil
}

// NodeReports has what nodes report of releases that the inspector has, for as long as a report counts; 0 takes none.
func (here *Local) NodeReports(releases api.Inspector, life time.Duration) storage.NodeReporter {
	return service.NodeReports{Table: here.DB.NodeReports(), Inspector: releases, Clock: here.DB, Life: life}
}

// InstanceBy is the registry of a data directory by a configuration. keys sign.
func (l Location) InstanceBy(here *Local, own config.Snapshot, keys *signer.Keyring) (*Instance, error) {
	trust, err := signer.NewTrust(own.Environments.Trust, own.Key)
	if err != nil {
		return nil, err
	}
	trust.WithRoots(own.Environments.Roots)
	content := &remote.Repositories{Agent: l.agent(), Environments: own.Environments, Local: func(repository string) (oci.Repository, error) {
		return oci.Local(here.Spared, here.Refs, repository), nil
	}}
	store := oci.New(content.Open, oci.Options{Progress: l.Hashing()})
	compare := parts.Compare(store)
	sign := keys.Sign
	if l.Telemetry != nil { // which a service alone has
		sign = signServed(keys)
	}
	svc, err := service.New(backend.Backend{
		Environments: own.Environments, Catalog: here.Catalog, Records: here.records, Listing: here.DB, Intents: here.DB,
		Content: store, Mirror: store, Compare: compare, Inspect: parts.Inspect(store),
		Verify: trust.Verify, Sign: sign, Manifests: here.DB, NodeTypes: l.localNodeTypes(here.DB), RestrictionBundles: here.DB.RestrictionBundles(),
		TrustBundles: here.DB.TrustBundles(), ReadKey: own.Key, KeptCheckpoint: here.keptCheckpoint,
		Tool: l.Tool(), Now: clock.Now, MaxReferrers: l.MaxReferrers,
		CheckStatement: predicates.CheckNew,
	})
	if err != nil {
		return nil, err
	}
	return &Instance{
		Registry: connect.Registry{
			Interface: service.Remember(svc, here.latest, resolveMemory), Envs: own.Environments, Store: store, Content: content,
			Verify: trust.Verify, VerifyNote: trust.VerifyNote, RoleKeys: trust.RoleKeys, KeyIDs: trust.KeyIDs,
			Name: "the data directory " + l.Data, Nodes: here.NodeReports(svc, 0),
		},
		Keys: keys, NodeTypes: l.localNodeTypes(here.DB), Local: here, Service: svc, Compare: compare, HeadFaults: svc.HeadFaults, Close: here.DB.Close,
	}, nil
}

// Create makes the data directory and, where there is no key at all, one that plays
// every role: enough for a laptop. A service would not trust it, so beside one none is
// made. Nothing in the directory is ever to be committed.
func (l Location) Create() error {
	if err := os.MkdirAll(l.Data, 0o700); err != nil {
		return err
	}
	if err := IgnoreAll(l.Data); err != nil {
		return err
	}
	if l.Keys != "" || l.Registry != "" {
		return nil
	}
	if has, err := l.KeyFolder().Any(); err != nil || has {
		return err
	}
	_, _, err := l.KeyFolder().New("")
	if registry.HasCode(err, registry.CodeConflict) {
		return nil // another process was first
	}
	if err == nil {
		l.Note("made a signing key: %s", filepath.Join(l.KeyDir(), signer.LocalKey+".key"))
	}
	return err
}

// Reindex fills the tables that are derived from manifests again. It returns how many manifests it read.
func (here *Local) Reindex(ctx context.Context) (int, error) {
	if err := here.DB.ResetDerived(ctx); err != nil {
		return 0, err
	}
	return oci.Reindex(ctx, here.Blobs, here.DB)
}

// localNodeTypes are those that were put, and those that the operator wrote as files:
// DATA/node-types/NAME.json.
func (l Location) localNodeTypes(db Database) storage.NodeTypes {
	return defaults.Over(db.NodeTypes(), defaults.Folder[artifact.Node]{Dir: filepath.Join(l.Data, "node-types"), Read: node.ParseFile})
}

// Runtimes are those of the database over those that ship with the program.
func (here *Local) Runtimes() storage.Runtimes {
	return defaults.Over(here.DB.Runtimes(), defaults.Runtimes())
}
